"""Verdicts over made rows: each promise can be broken alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from streamer.bench.config import SoakConfig
from streamer.bench.plot import soak_svg
from streamer.bench.sample import Drops, Sample, drops_of
from streamer.bench.tally import Tally
from streamer.bench.verdict import Verdict, judge
from streamer.errors import ConfigError

pytestmark = pytest.mark.unit

CONFIG = SoakConfig(minutes=30)


def row(at_s: float) -> Sample:
    """A service that does well, with some noise."""
    noise = math.sin(at_s)
    return Sample(
        at_s=at_s,
        memory_mb=250 + noise,
        pss_mb=380 + noise,
        rss_mb=400.0,
        processes=1,
        threads=7,
        fds=10,
        cpu_cores=0.2,
        object_store_mb=None,
        events=10,
        age_p50_s=0.1 + 0.01 * noise,
        age_p95_s=0.2 + 0.02 * noise,
        age_max_s=0.3,
        lag_s=0.1,
        fps_in=25.0,
        drops=Drops(),
    )


def good_reader() -> Tally:
    tally = Tally()
    tally.events = 3600
    return tally


def told_reader() -> Tally:
    tally = good_reader()
    tally.gaps["slow_subscriber"] = 3
    tally.told = 40
    return tally


def verdicts(
    change: Callable[[Sample], Sample] = lambda sample: sample,
    *,
    reader: Tally | None = None,
    slow: Tally | None = None,
    is_ours: bool = True,
    death: str = "",
    until_s: int = 1800,
) -> dict[str, Verdict]:
    found = judge(
        [change(row(5.0 * n)) for n in range(until_s // 5)],
        readers=[reader or good_reader()],
        slow=slow or told_reader(),
        config=CONFIG,
        is_ours=is_ours,
        death=death,
    )
    return {verdict.name: verdict for verdict in found}


def failed(found: dict[str, Verdict]) -> list[str]:
    return [name for name, verdict in found.items() if verdict.ok is False]


def test_a_good_run_holds() -> None:
    assert failed(verdicts()) == []


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        (lambda s: replace(s, memory_mb=s.memory_mb + s.at_s / 3600 * 40), "memory"),
        (lambda s: replace(s, age_p95_s=s.age_p95_s + s.at_s / 1000), "age of events"),
        (lambda s: replace(s, age_p95_s=s.age_p95_s + 6), "age of events"),
        (lambda s: replace(s, threads=s.threads + int(s.at_s / 100)), "threads"),
        (lambda s: replace(s, fds=s.fds + int(s.at_s / 100)), "open files"),
        (lambda s: replace(s, object_store_mb=s.at_s / 10), "object store MB"),
    ],
)
def test_what_grows_is_found(change: Callable[[Sample], Sample], broken: str) -> None:
    assert failed(verdicts(change)) == [broken]


def test_the_warm_up_is_not_judged() -> None:
    def cold(sample: Sample) -> Sample:
        if sample.at_s >= CONFIG.warm_up_s:
            return sample
        return replace(sample, memory_mb=100.0, age_p95_s=16.0, threads=3)

    assert failed(verdicts(cold)) == []


def test_memory_that_only_waves_is_flat() -> None:
    waves = verdicts(lambda s: replace(s, memory_mb=300 + 60 * math.sin(s.at_s / 50)))
    assert failed(waves) == []


@pytest.mark.parametrize("what", ["holes", "repeats", "told"])
def test_a_reader_that_keeps_up_misses_nothing(what: str) -> None:
    reader = good_reader()
    setattr(reader, what, 1)
    assert failed(verdicts(reader=reader)) == ["sequence"]


def test_a_slow_reader_must_be_told() -> None:
    assert failed(verdicts(slow=good_reader())) == ["slow reader"]
    assert verdicts(slow=good_reader(), is_ours=False)["slow reader"].ok is None
    assert verdicts(slow=good_reader(), until_s=200)["slow reader"].ok is None
    for code in (4408, 1006):
        refused = good_reader()
        refused.cuts[code] = 1
        assert verdicts(slow=refused)["slow reader"].ok is True


def test_a_slow_reader_must_be_told_everything() -> None:
    slow = told_reader()
    slow.holes = 1
    assert failed(verdicts(slow=slow)) == ["slow reader"]


def test_a_service_that_died_or_said_nothing_has_failed() -> None:
    assert failed(verdicts(death="exit code -9")) == ["service"]
    assert failed(verdicts(reader=Tally())) == ["service"]


def test_too_short_a_run_is_no_run() -> None:
    assert failed(verdicts(until_s=10)) == ["length"]


def test_a_run_that_was_ended_early_is_judged_over_what_there_is() -> None:
    found = verdicts(until_s=60)
    assert failed(found) == []
    assert found["memory"].ok is True


def test_a_service_elsewhere_is_judged_by_what_it_sends() -> None:
    found = verdicts(lambda s: replace(s, memory_mb=None, threads=None, fds=None), is_ours=False)
    assert failed(found) == []
    assert found["memory"].ok is found["threads"].ok is None
    assert found["age of events"].ok is True


@pytest.mark.parametrize(
    "wrong",
    [{"minutes": 0.1}, {"streams": 0}, {"sample_s": 0}, {"slow_read_s": 0.5}, {"stride_s": -1}],
)
def test_a_soak_that_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        SoakConfig(**wrong)  # type: ignore[arg-type]


def test_drops_are_added_up_over_streams() -> None:
    one = {"drops": {"dropped": 1, "clips_superseded": 2, "clips_rejected": 3}}
    assert drops_of([one, one, {"drops": None}, {}]) == Drops(pictures=2, superseded=4, rejected=6)


def test_the_picture_is_svg_and_says_its_title() -> None:
    samples = [row(5.0 * n) for n in range(20)]
    picture = ElementTree.fromstring(soak_svg(samples, title="a < b", warm_up_s=20))
    texts = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "a < b"
    assert "memory, MB" in texts
    assert soak_svg([], title="nothing yet", warm_up_s=20)
