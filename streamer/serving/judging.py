"""Surprise: which earlier future a latent can judge, and what that means for its stream."""

# P tokens per tubelet  D width

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from streamer.events.schema import Surprise
from streamer.futures.config import SurpriseConfig
from streamer.futures.surprise import Match, match_horizon, score
from streamer.records import AnticipationRequest, Latent, ModelInfo, Prior, SurpriseState
from streamer.serving.anticipation_event import surprise_of
from streamer.serving.rollout_engine import Foretold
from streamer.telemetry import Meter

__all__ = ["Judge", "Judgement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a clip says of the future foretold for it."""

    surprise: Surprise | None
    """For the clip's event; None when nothing earlier reaches this window."""
    state: SurpriseState
    """Goes with the stream's next clip."""


class Judge:
    """Keeps nothing of a stream: what it remembers travels with the clip.

    Args:
        info: of the model that makes futures here; those of another one cannot be judged.
    """

    def __init__(self, info: ModelInfo, *, config: SurpriseConfig, meter: Meter) -> None:
        self._info = info
        self._config = config
        self._meter = meter

    def match(self, latent: Latent, request: AnticipationRequest) -> Match | None:
        """The earlier horizon that came true inside this clip; None when there is none."""
        prior = request.prior
        if prior is None or self.is_lost(prior) or prior.generation != request.generation:
            return None
        return match_horizon(
            prior.horizons_s,
            shift_ticks=request.last_tick - prior.last_tick,
            fps=request.fps,
            tubelet=self._info.tubelet,
            tubelets=latent.grid[0],
        )

    def is_lost(self, prior: Prior | None) -> bool:
        """The replica that held it died, or was replaced by one with another model."""
        return prior is not None and (prior.tokens is None or prior.model != self._info.fingerprint)

    def foretold(self, prior: Prior | None, match: Match | None) -> Foretold | None:
        """What the engine compares with the new latent."""
        if prior is None or match is None:
            return None
        tokens_PD: Tensor = prior.tokens[match.row]
        return Foretold(tokens=tokens_PD, tubelets_ago=match.tubelets_ago)

    def judge(
        self, request: AnticipationRequest, *, value: float | None, match: Match | None
    ) -> Judgement:
        """Set a measured distance against the stream's own past.

        Args:
            value: distance of the match, as the engine measured it; None without one.
        """
        if value is None or match is None or request.prior is None:
            return Judgement(surprise=None, state=request.surprise)
        state, found = score(request.surprise, value=value, config=self._config)
        self._meter.observe("streamer_surprise", value, stream=request.stream)
        return Judgement(
            surprise=surprise_of(found, prior=request.prior, row=match.row), state=state
        )
