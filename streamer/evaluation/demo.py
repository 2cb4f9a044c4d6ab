"""How well the demo model anticipates the yard: `streamer evaluate demo`."""

# N clips  P tokens per tubelet  D width

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from streamer.errors import ConfigError
from streamer.evaluation.foresight import Foresight, Seen, render
from streamer.models.vjepa2 import VJepa2
from streamer.probes.linear import LinearProbe, fit_ridge
from streamer.probes.metrics import auroc, r2
from streamer.worlds.world import Body, Stage, Truth
from streamer.worlds.yard import MISHAPS, Mishap, MishapKind, Yard

__all__ = ["DemoEvaluation", "DemoReport"]

_FPS = 4.0
_HORIZONS_S = (0.5, 1.0, 2.0)
_LOUDEST = 2
"""Tokens of a tubelet whose error is surprise: a thing fills one or two, the mean hides it."""

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoReport:
    """Per horizon in seconds, as a string; surprise per kind of mishap."""

    skill: dict[str, float] = field(default_factory=dict)
    """1 - L1 / L1 of "nothing changes", on tokens where something moves."""
    skill_all: dict[str, float] = field(default_factory=dict)
    """The same on all tokens."""
    rollout_over_direct: dict[str, float] = field(default_factory=dict)
    """L1 of the rollout over that of one direct prediction."""
    position_r2: dict[str, float] = field(default_factory=dict)
    """Of the first ball, by a probe fitted on observed tubelets and applied to foretold ones."""
    position_r2_persistence: dict[str, float] = field(default_factory=dict)
    """By the same probe on the newest observed tubelet."""
    position_r2_observed: dict[str, float] = field(default_factory=dict)
    """By the same probe on what then came: the most that can be had."""
    event_auroc: dict[str, float] = field(default_factory=dict)
    """In the zone then, of clips not in it now: a detector fitted on observed tubelets, applied to
    foretold ones."""
    event_auroc_present: dict[str, float] = field(default_factory=dict)
    """The same detector on the newest observed tubelet."""
    event_auroc_refitted: dict[str, float] = field(default_factory=dict)
    """A detector fitted for this horizon on the newest observed tubelet."""
    surprise_auroc: dict[str, float] = field(default_factory=dict)
    """Clips with a mishap against ordinary ones, single clips; `mean` over the kinds."""

    def as_json(self) -> dict[str, Any]:
        names = self.__dataclass_fields__
        return {
            name: {key: round(value, 4) for key, value in getattr(self, name).items()}
            for name in names
        }


class DemoEvaluation:
    """Yards of one evaluation.

    Args:
        seed: yards are numbered from it; below the seeds of any training.
        fit, test: clips to fit probes on, and to test with.
    """

    def __init__(
        self, model: VJepa2, *, seed: int, fit: int = 1500, test: int = 1000, mishaps: int = 400
    ) -> None:
        if not 0 <= seed < 1000:
            raise ConfigError(f"seed is {seed}; an evaluation takes 0 to 999.")
        self._first = seed * 1_000_000
        self._sizes = (fit, test, mishaps)
        side = model.config.crop_size
        self._stage = Stage(height=side, width=side, fps=_FPS)
        tubelet_s = model.config.tubelet_size / _FPS
        self._steps = {round(each / tubelet_s): f"{each}" for each in _HORIZONS_S}
        self._eyes = Foresight(model, steps=tuple(self._steps))

    def run(self, *, told: Told = lambda _: None) -> DemoReport:
        """Takes minutes. `told` hears what is being done."""
        fit, test, mishaps = self._sizes
        told(f"looking at {fit} yards to fit probes")
        known = self._eyes.see(self._yards(0, fit))
        told(f"looking at {test} yards to test them")
        seen = self._eyes.see(self._yards(fit, test))
        report = DemoReport()
        self._skills(report, seen)
        self._positions(report, known, seen)
        self._events(report, known, seen)
        for kind in MISHAPS:
            told(f"surprise: {kind}")
            report.surprise_auroc[kind] = self._surprise(kind, fit + test, mishaps)
        values = list(report.surprise_auroc.values())
        report.surprise_auroc["mean"] = sum(values) / len(values)
        return report

    def _yards(self, first: int, count: int) -> list[Yard]:
        begin = self._first + first
        return [Yard(seed=begin + i, stage=self._stage) for i in range(count)]

    def _skills(self, report: DemoReport, seen: Seen) -> None:
        for step, name in self._steps.items():
            truth = seen.came[step]
            moving = self._moving(seen.now, seen.then[step])
            error, still, direct = (
                (each - truth).abs().mean(dim=-1)
                for each in (seen.futures[step], seen.present, seen.direct[step])
            )
            report.skill[name] = float(1 - error[moving].mean() / still[moving].mean())
            report.skill_all[name] = float(1 - error.mean() / still.mean())
            report.rollout_over_direct[name] = float(error.mean() / direct.mean())

    def _moving(self, now: Sequence[Truth], then: Sequence[Truth]) -> Tensor:
        """`bool [N, P]`: places that a ball touches now or then."""
        side = self._eyes.side
        rows = [
            [
                any(_touches(body, i // side, i % side, side) for body in (*a.bodies, *b.bodies))
                for i in range(side * side)
            ]
            for a, b in zip(now, then, strict=True)
        ]
        return torch.tensor(rows)

    def _positions(self, report: DemoReport, known: Seen, seen: Seen) -> None:
        probe = _fitted(known, _places)
        for step, name in self._steps.items():
            actual = _places(seen.then[step])
            report.position_r2[name] = r2(probe(seen.futures[step].flatten(1)), actual)
            report.position_r2_persistence[name] = r2(probe(seen.present.flatten(1)), actual)
            report.position_r2_observed[name] = r2(probe(seen.came[step].flatten(1)), actual)

    def _events(self, report: DemoReport, known: Seen, seen: Seen) -> None:
        detector = _fitted(known, _zones)
        outside = _zones(seen.now)[:, 0] == 0
        before = _zones(known.now)[:, 0] == 0
        for step, name in self._steps.items():
            will = _zones(seen.then[step])[outside, 0]

            def score(probe: LinearProbe, tokens: Tensor, will: Tensor = will) -> float:
                return auroc(probe(tokens.flatten(1))[outside, 0], will)

            report.event_auroc[name] = score(detector, seen.futures[step])
            report.event_auroc_present[name] = score(detector, seen.present)
            refitted = fit_ridge(known.present.flatten(1)[before], _zones(known.then[step])[before])
            report.event_auroc_refitted[name] = score(refitted, seen.present)

    def _surprise(self, kind: MishapKind, first: int, count: int) -> float:
        begin = self._first + first
        ordinary = self._loudest([Yard(seed=begin + i, stage=self._stage) for i in range(count)])
        tampered = self._loudest(
            [
                Yard(
                    seed=begin + count + i,
                    stage=self._stage,
                    mishap=Mishap(kind=kind, time_s=self._moment(i)),
                )
                for i in range(count)
            ]
        )
        marks = torch.cat([torch.zeros(count), torch.ones(count)])
        return auroc(torch.cat([ordinary, tampered]), marks)

    def _moment(self, i: int) -> float:
        """Within the first tubelets after a clip, not always at a tubelet's edge."""
        return (self._eyes.frames + 1 + i % 5) / _FPS

    def _loudest(self, yards: Sequence[Yard]) -> Tensor:
        """Largest surprise of each yard over the tubelets after its first clip, `[N]`."""
        eyes = self._eyes
        pixels = render(yards, range(eyes.frames + 4 * eyes.tubelet))
        scores = []
        raw = eyes.latents(pixels[:, : eyes.frames])
        for step in range(1, 5):
            foretold = eyes.next_tubelet(raw)
            end = eyes.frames + step * eyes.tubelet
            raw = eyes.latents(pixels[:, end - eyes.frames : end])
            error_NP = (foretold - eyes.newest(raw)).abs().mean(dim=-1)
            scores.append(error_NP.topk(_LOUDEST, dim=1).values.mean(dim=1))
        return torch.stack(scores).amax(dim=0)


def _fitted(known: Seen, targets: Callable[[Sequence[Truth]], Tensor]) -> LinearProbe:
    """On observed tubelets: the present's, and those that came."""
    tubelets = [known.present, *known.came.values()]
    truths = [known.now, *known.then.values()]
    return fit_ridge(
        torch.cat([each.flatten(1) for each in tubelets]),
        torch.cat([targets(each) for each in truths]),
    )


def _places(truths: Sequence[Truth]) -> Tensor:
    return torch.tensor([[truth.bodies[0].x, truth.bodies[0].y] for truth in truths])


def _zones(truths: Sequence[Truth]) -> Tensor:
    return torch.tensor([[float(bool(truth.is_in_zone))] for truth in truths])


def _touches(body: Body, row: int, column: int, side: int) -> bool:
    x = min(max(body.x, column / side), (column + 1) / side)
    y = min(max(body.y, row / side), (row + 1) / side)
    return (x - body.x) ** 2 + (y - body.y) ** 2 <= body.radius**2
