"""Rows and tallies -> one verdict per promise, each with its numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from streamer.bench.config import SoakBounds, SoakConfig
from streamer.bench.sample import Sample
from streamer.bench.tally import Tally
from streamer.bench.trend import quantile, slope, thirds

__all__ = ["Verdict", "judge"]

_FEWEST = 3
_TOLD_CODE = 4408
# The buffers between a service and a slow reader hold a minute or two.
_SLOW_AFTER_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether one promise held."""

    name: str
    ok: bool | None
    """None: could not be judged."""
    text: str
    """One line for people."""
    numbers: dict[str, float] = field(default_factory=dict)


def judge(
    samples: Sequence[Sample],
    *,
    readers: Sequence[Tally],
    slow: Tally,
    config: SoakConfig,
    is_ours: bool,
    death: str = "",
) -> list[Verdict]:
    """Everything that a soak promises.

    Args:
        samples: all rows; those of the warm-up are left out here. Of a run that was ended early it
            is a fifth of what there is.
        readers: of those that keep up, one per stream.
        slow: of the one that does not.
        is_ours: the service was set up for this, so that the slow reader must have been told after
            some minutes.
        death: why the service ended by itself; empty when it did not.
    """
    bounds = config.bounds
    warm_up_s = min(config.warm_up_s, samples[-1].at_s / 5) if samples else config.warm_up_s
    rows = [row for row in samples if row.at_s >= warm_up_s]
    found = [_alive(readers, death)]
    if len(rows) < _FEWEST:
        text = f"only {len(rows)} looks after the warm-up of {warm_up_s:g} s"
        return [*found, Verdict(name="length", ok=False, text=text)]
    found += [_memory(rows, bounds), _age(rows, bounds)]
    found += [
        _level(rows, "threads", lambda row: row.threads, slack=bounds.threads),
        _level(rows, "open files", lambda row: row.fds, slack=bounds.fds),
    ]
    if any(row.object_store_mb is not None for row in rows):
        slack = bounds.object_store_mb
        found.append(_level(rows, "object store MB", lambda row: row.object_store_mb, slack=slack))
    must_be_told = is_ours and rows[-1].at_s >= _SLOW_AFTER_S
    return [*found, _whole(readers), _slow(slow, must_be_told=must_be_told), _drops(samples)]


def _alive(readers: Sequence[Tally], death: str) -> Verdict:
    if death:
        return Verdict(name="service", ok=False, text=f"the service ended by itself: {death}")
    fewest = min(reader.events for reader in readers)
    text = f"ran throughout; {sum(reader.events for reader in readers)} events read"
    return Verdict(name="service", ok=fewest > 0, text=text, numbers={"fewest_events": fewest})


def _memory(rows: Sequence[Sample], bounds: SoakBounds) -> Verdict:
    points = [(row.at_s / 3600, row.memory_mb) for row in rows if row.memory_mb is not None]
    if len(points) < _FEWEST:
        return Verdict(name="memory", ok=None, text="not measured: the service is elsewhere")
    hours = points[-1][0] - points[0][0]
    rate = slope([at for at, _ in points], [mb for _, mb in points])
    first, last = (quantile([mb for _, mb in part], 0.5) for part in thirds(points))
    allowed = max(bounds.memory_mb_per_h * hours, bounds.memory_mb)
    text = (
        f"{first:.0f} MB in the first third, {last:.0f} MB in the last; slope {rate:+.1f} MB/h,"
        f" {rate * hours:+.1f} MB over {hours * 60:.1f} min (bound {allowed:.1f} MB)"
    )
    numbers = {"mb_per_h": rate, "first_mb": first, "last_mb": last, "bound_mb": allowed}
    return Verdict(name="memory", ok=rate * hours <= allowed, text=text, numbers=numbers)


def _age(rows: Sequence[Sample], bounds: SoakBounds) -> Verdict:
    seen = [row for row in rows if row.age_p95_s is not None and row.age_p50_s is not None]
    if len(seen) < _FEWEST:
        return Verdict(name="age of events", ok=False, text="too few events to judge")
    first, last = thirds(seen)
    p50 = [quantile([row.age_p50_s or 0.0 for row in part], 0.5) for part in (first, last)]
    p95 = [quantile([row.age_p95_s or 0.0 for row in part], 0.95) for part in (first, last)]
    whole = quantile([row.age_p95_s or 0.0 for row in seen], 0.95)
    rate = slope([row.at_s / 3600 for row in seen], [row.age_p50_s or 0.0 for row in seen])
    most = p95[0] * bounds.age_factor + bounds.age_slack_s
    text = (
        f"p95 {p95[0]:.3f} s in the first third, {p95[1]:.3f} s in the last (bound {most:.3f} s);"
        f" p50 {p50[0]:.3f} and {p50[1]:.3f} s, slope {rate:+.3f} s/h; p95 of all {whole:.3f} s"
        f" (bound {bounds.age_s:g} s)"
    )
    numbers = {
        "first_p95_s": p95[0],
        "last_p95_s": p95[1],
        "first_p50_s": p50[0],
        "last_p50_s": p50[1],
        "p95_s": whole,
        "s_per_h": rate,
        "bound_p95_s": most,
    }
    ok = p95[1] <= most and whole <= bounds.age_s
    return Verdict(name="age of events", ok=ok, text=text, numbers=numbers)


def _level(
    rows: Sequence[Sample],
    name: str,
    value: Callable[[Sample], float | None],
    *,
    slack: float,
) -> Verdict:
    """The typical value of the last third is not above that of the first."""
    values = [found for row in rows if (found := value(row)) is not None]
    if len(values) < _FEWEST:
        return Verdict(name=name, ok=None, text="not measured: the service is elsewhere")
    first, last = (quantile(part, 0.5) for part in thirds(values))
    text = f"{first:.0f} in the first third, {last:.0f} in the last (bound +{slack:g}), most "
    numbers = {"first": first, "last": last, "most": max(values)}
    return Verdict(
        name=name, ok=last <= first + slack, text=f"{text}{max(values):.0f}", numbers=numbers
    )


def _whole(readers: Sequence[Tally]) -> Verdict:
    holes, repeats, told = (
        sum(getattr(reader, what) for reader in readers) for what in ("holes", "repeats", "told")
    )
    text = f"{holes} holes, {repeats} repeats, {told} told missing; cut {_cuts(readers)}"
    numbers: dict[str, float] = {"holes": holes, "repeats": repeats, "told_missing": told}
    return Verdict(name="sequence", ok=holes == repeats == told == 0, text=text, numbers=numbers)


def _slow(slow: Tally, *, must_be_told: bool) -> Verdict:
    """Told by a `gap`, or cut off: one that takes nothing has no room for a close frame either."""
    gaps, cuts = sum(slow.gaps.values()), sum(slow.cuts.values())
    numbers: dict[str, float] = {
        "gaps": gaps,
        "cuts": cuts,
        "cuts_4408": slow.cuts[_TOLD_CODE],
        "read": slow.events,
        "told_missing": slow.told,
        "holes": slow.holes,
        "repeats": slow.repeats,
    }
    text = (
        f"read {slow.events}, told of {slow.told} missing in {gaps} gaps, cut {_cuts([slow])},"
        f" {slow.holes} holes nobody told, {slow.repeats} repeats"
    )
    ok: bool | None = slow.holes == slow.repeats == 0
    if not gaps + cuts:
        text += "; never slow enough to be told"
        ok = False if must_be_told or not ok else None
    return Verdict(name="slow reader", ok=ok, text=text, numbers=numbers)


def _drops(samples: Sequence[Sample]) -> Verdict:
    drops = samples[-1].drops
    text = (
        f"{drops.pictures} pictures lost, {drops.superseded} clips superseded,"
        f" {drops.rejected} rejected (a busy machine drops; told, not judged)"
    )
    numbers: dict[str, float] = {
        "pictures": drops.pictures,
        "superseded": drops.superseded,
        "rejected": drops.rejected,
    }
    return Verdict(name="drops", ok=None, text=text, numbers=numbers)


def _cuts(readers: Sequence[Tally]) -> str:
    cuts = [f"{code} x{count}" for reader in readers for code, count in reader.cuts.items()]
    return ", ".join(cuts) or "never"
