"""What the device computes per event: futures, drift and surprise, with one wait at the end."""

# K horizons  N tokens  P tokens per tubelet (h*w)  D width

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from streamer.errors import NumericalError
from streamer.futures.config import RolloutConfig
from streamer.futures.rollout import Rollout
from streamer.futures.surprise import distance
from streamer.models.vjepa2 import VJepa2
from streamer.records import Future, Latent, RolloutMode

__all__ = ["Foretold", "Rolled", "RolloutEngine", "RolloutJob"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Foretold:
    """An earlier future and the tubelet of the new latent that it was about."""

    tokens: Tensor
    """`[P, D]`."""
    tubelets_ago: int
    """Counted back from the newest tubelet, from 0."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RolloutJob:
    """One latent and what is wanted of it."""

    latent: Latent
    """Raw tokens."""
    mode: RolloutMode
    fps: float
    steps: tuple[int, ...]
    """Ascending, each at least 1."""
    foretold: Foretold | None = None
    superseded: threading.Event = field(default_factory=threading.Event)
    """Set, from any thread, once a newer clip makes this one's later steps worthless."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rolled:
    """The answer to a job; rows in the order of its steps, without the last ones when it was
    superseded."""

    tokens: Tensor
    """`[K, P, D]`, at least one row."""
    drifts: tuple[float, ...]
    surprise: float | None
    is_extrapolated: bool
    is_superseded: bool
    """Steps are missing."""


class RolloutEngine:
    """Runs in the device's thread."""

    def __init__(self, model: VJepa2, *, config: RolloutConfig | None = None) -> None:
        self._rollout = Rollout(model, config=config)
        self._places = model.config.grid_size**2

    @torch.inference_mode()
    def run(self, job: RolloutJob) -> Rolled:
        """One job. Superseded, it ends with the step under way, or with its first wanted one.

        On a GPU steps are launched ahead of the device, so only what is not launched yet is saved.

        Raises:
            ShapeMismatch, HorizonUnreachable: the job does not fit the model.
            NumericalError: a result is not finite.
        """
        tokens = job.latent.tokens.to(self._rollout.device)
        wanted: list[Future] = []
        numbers: list[Tensor] = []
        before = self._tubelet(tokens, ago=0)
        for future in self._futures(tokens, job):
            if future.step in job.steps:
                wanted.append(future)
                numbers.append(distance(future.tokens, before))
            if job.mode == "contiguous":
                before = future.tokens
            if wanted and job.superseded.is_set():
                break
        if job.foretold is not None:
            truth = self._tubelet(tokens, ago=job.foretold.tubelets_ago)
            numbers.append(distance(job.foretold.tokens.to(truth.device), truth))
        values = _finite(numbers, job)
        return Rolled(
            tokens=torch.stack([future.tokens for future in wanted]),
            drifts=tuple(values[: len(wanted)]),
            surprise=values[-1] if job.foretold is not None else None,
            is_extrapolated=any(future.is_extrapolated for future in wanted),
            is_superseded=len(wanted) < len(job.steps),
        )

    def _futures(self, tokens_ND: Tensor, job: RolloutJob) -> Iterator[Future]:
        grid = job.latent.grid
        if job.mode == "gap":
            gaps = [step - 1 for step in job.steps]
            return self._rollout.gap(tokens_ND, grid=grid, fps=job.fps, gaps=gaps)
        return self._rollout.contiguous(tokens_ND, grid=grid, fps=job.fps, steps=job.steps[-1])

    def _tubelet(self, tokens_ND: Tensor, *, ago: int) -> Tensor:
        end = tokens_ND.shape[0] - ago * self._places
        return tokens_ND[end - self._places : end]


def _finite(numbers: list[Tensor], job: RolloutJob) -> list[float]:
    stacked = torch.stack(numbers)
    values: list[float] = stacked.tolist()  # the one wait for the device
    if not all(abs(value) < float("inf") for value in values):
        raise NumericalError(
            f"The predictor gave values that are not finite for clip {job.latent.clip} of stream "
            f"{job.latent.stream}."
        )
    return values
