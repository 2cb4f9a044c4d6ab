"""When surprise becomes an episode, and when that is over. Sans-I/O; knows no tensors.

An episode begins at a high z-score and ends after some clips in a row at a low one. While it lasts
the baseline stands still, so that what surprises does not become what is expected; what lasts
longer than an episode may is the new normal, and the baseline begins anew with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from streamer.futures.config import SurpriseConfig
from streamer.records import Episode, Peak, SurpriseState

__all__ = ["EndReason", "Judged", "Phase", "Step", "advance"]

Phase = Literal["begin", "update", "end"]
EndReason = Literal["calm", "reconnected", "too_long"]

_RISE = 1.25
"""A peak that rises by this factor is told at once: a ramp gives a few events, not one a clip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What one clip says. Without `value` nothing earlier reached its window."""

    captured_ns: int
    """UTC capture of its newest frame."""
    generation: int
    value: float | None = None
    z: float | None = None
    """None also while the baseline fills."""
    horizon_s: float = 0.0
    predicted_by: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Where a clip leaves its stream."""

    state: SurpriseState
    """Goes with the stream's next clip, once it is `numbered`."""
    episode: Episode | None = None
    """The one that this clip belongs to, or has ended."""
    phase: Phase | None = None
    """What is to be told of it; None: nothing with this clip."""
    reason: EndReason | None = None
    """With phase `end`."""

    def numbered(self, seq: int) -> Step:
        """The same, once the clip's event has its number: a peak set by it refers to that."""
        if self.episode is None or self.episode.peak.seq:
            return self
        episode = replace(self.episode, peak=replace(self.episode.peak, seq=seq))
        is_open = self.state.episode is not None
        state = replace(self.state, episode=episode) if is_open else self.state
        return replace(self, episode=episode, state=state)


def advance(state: SurpriseState, judged: Judged, *, new_id: str, config: SurpriseConfig) -> Step:
    """Take the next clip of a stream.

    Args:
        new_id: for an episode that begins here.
    """
    episode, phase, reason = _follow(state.episode, judged, new_id=new_id, config=config)
    history = state.history
    is_open = episode is not None and phase != "end"
    if judged.value is not None and not is_open:
        past = () if reason == "too_long" else history
        history = (*past, judged.value)[-config.history :]
    told = episode
    if phase is not None and episode is not None:
        told = replace(episode, untold=0, told_z=episode.peak.z)
    return Step(
        state=SurpriseState(history=history, episode=told if is_open else None),
        episode=told,
        phase=phase,
        reason=reason,
    )


def _follow(
    episode: Episode | None, judged: Judged, *, new_id: str, config: SurpriseConfig
) -> tuple[Episode | None, Phase | None, EndReason | None]:
    if episode is None:
        peak = _peak(judged)
        if peak is None or peak.z < config.enter_z:
            return None, None, None
        return _begun(new_id, peak, generation=judged.generation), "begin", None
    if judged.generation != episode.generation:
        return episode, "end", "reconnected"
    episode = _grown(episode, judged, config=config)
    if episode.calm >= config.calm_clips:
        return episode, "end", "calm"
    if episode.last_ns - episode.start_ns >= config.max_episode_s * 1e9:
        return episode, "end", "too_long"
    has_risen = episode.peak.z >= _RISE * episode.told_z
    is_due = has_risen or episode.untold >= config.update_clips
    return episode, "update" if is_due else None, None


def _begun(new_id: str, peak: Peak, *, generation: int) -> Episode:
    return Episode(
        id=new_id,
        generation=generation,
        start_ns=peak.captured_ns,
        last_ns=peak.captured_ns,
        peak=peak,
        told_z=peak.z,
    )


def _grown(episode: Episode, judged: Judged, *, config: SurpriseConfig) -> Episode:
    peak = _peak(judged)
    calm = episode.calm
    if peak is not None:  # a clip that nothing foretold says neither
        calm = calm + 1 if peak.z < config.exit_z else 0
    is_higher = peak is not None and peak.z > episode.peak.z
    return replace(
        episode,
        last_ns=judged.captured_ns,
        peak=peak if peak is not None and is_higher else episode.peak,
        calm=calm,
        untold=episode.untold + 1,
    )


def _peak(judged: Judged) -> Peak | None:
    if judged.value is None or judged.z is None:
        return None
    return Peak(
        value=judged.value,
        z=judged.z,
        seq=0,
        captured_ns=judged.captured_ns,
        horizon_s=judged.horizon_s,
        predicted_by=judged.predicted_by,
    )
