"""Surprise: which earlier future a latent can judge, and what that means for its stream."""

# P tokens per tubelet  D width

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from streamer.clock import wall_ns
from streamer.events.parts import Surprise
from streamer.events.schema import retained_body
from streamer.events.ulid import Ulids
from streamer.futures.config import SurpriseConfig
from streamer.futures.episodes import Judged, Step, advance
from streamer.futures.surprise import Match, Score, match_horizon, score
from streamer.records import AnticipationRequest, Latent, ModelInfo, Prior, SurpriseState
from streamer.serving.anticipation_event import surprise_of
from streamer.serving.episode_event import episode_body
from streamer.serving.rollout_engine import Foretold
from streamer.telemetry import Meter

__all__ = ["Judge", "Judgement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a clip says of the future foretold for it."""

    surprise: Surprise | None
    """For the clip's event; None when nothing earlier reaches this window."""
    score: Score | None
    """The same, not rounded."""
    step: Step
    """What that means for its stream."""


class Judge:
    """Keeps nothing of a stream: what it remembers travels with the clip.

    Args:
        info: of the model that makes futures here; those of another one cannot be judged.
    """

    def __init__(self, info: ModelInfo, *, config: SurpriseConfig, meter: Meter) -> None:
        self._info = info
        self._config = config
        self._meter = meter
        self._ids = Ulids()

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
        prior = request.prior
        if value is None or match is None or prior is None:
            judged = Judged(captured_ns=request.end_ns, generation=request.generation)
            return Judgement(surprise=None, score=None, step=self._advance(request, judged))
        found = score(request.surprise.history, value=value, config=self._config)
        if request.number is None:  # else it is no stream of ours, but what a caller named its file
            self._meter.observe("streamer_surprise", value, stream=request.stream)
        judged = Judged(
            captured_ns=request.end_ns,
            generation=request.generation,
            value=_eight_digits(value),
            z=None if found.z is None else _eight_digits(found.z),
            horizon_s=prior.horizons_s[match.row],
            predicted_by=prior.seq,
        )
        step = self._advance(request, judged)
        episode = step.episode.id if step.episode else None
        surprise = surprise_of(found, prior=prior, row=match.row, episode=episode)
        return Judgement(surprise=surprise, score=found, step=step)

    def conclude(
        self, request: AnticipationRequest, judged: Judgement, *, seq: int
    ) -> tuple[SurpriseState, bytes | None]:
        """The stream's next state, and what is to be appended after the clip's event, if anything.

        Args:
            seq: of the clip's event.
        """
        step = judged.step.numbered(seq)
        if step.phase is None or step.episode is None:
            return step.state, None
        body = episode_body(
            request,
            step.episode,
            phase=step.phase,
            reason=step.reason,
            score=judged.score,
            seq=seq,
            threshold=self._config.enter_z,
            model=self._info,
            now_ns=wall_ns(),
        )
        return step.state, retained_body(body)

    def _advance(self, request: AnticipationRequest, judged: Judged) -> Step:
        return advance(request.surprise, judged, new_id=self._ids.next(), config=self._config)


def _eight_digits(value: float) -> float:
    """Keeps the state small in any notation."""
    return float(f"{value:.8g}")
