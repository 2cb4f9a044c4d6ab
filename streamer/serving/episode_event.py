"""An episode as it stands -> the body of one `surprise` event. Pure: no clock, no tensors."""

from __future__ import annotations

from streamer.clock import format_utc
from streamer.events.parts import ModelRef, SurprisePeak, TimeSpan
from streamer.events.schema import SurpriseEpisodeBody
from streamer.futures.episodes import EndReason, Phase
from streamer.futures.surprise import Score
from streamer.records import AnticipationRequest, Episode, ModelInfo, Peak

__all__ = ["episode_body"]


def episode_body(
    request: AnticipationRequest,
    episode: Episode,
    *,
    phase: Phase,
    reason: EndReason | None,
    score: Score | None,
    seq: int,
    threshold: float,
    model: ModelInfo,
    now_ns: int,
) -> SurpriseEpisodeBody:
    """Put the parts together.

    Args:
        score: of this clip; None when nothing was foretold for it.
        seq: of this clip's anticipation.
        now_ns: UTC, when the event is appended.
    """
    return SurpriseEpisodeBody(
        stream=request.stream,
        time=format_utc(now_ns),
        phase=phase,
        episode=episode.id,
        reason=reason,
        window=TimeSpan(start=format_utc(request.start_ns), end=format_utc(request.end_ns)),
        start=format_utc(episode.start_ns),
        end=format_utc(episode.last_ns) if phase == "end" else None,
        duration_s=max(0.0, round((episode.last_ns - episode.start_ns) / 1e9, 6)),
        peak=_peak(episode.peak),
        value=_six_digits(score.value) if score else None,
        z=_six_digits(score.z) if score else None,
        baseline=_six_digits(score.baseline) if score else None,
        threshold=threshold,
        anticipation=seq,
        model=ModelRef(name=model.name, fingerprint=model.fingerprint, trained=model.trained),
    )


def _peak(peak: Peak) -> SurprisePeak:
    return SurprisePeak(
        value=float(f"{peak.value:.6g}"),
        z=float(f"{peak.z:.6g}"),
        seq=peak.seq,
        capture_time=format_utc(peak.captured_ns),
        horizon_s=peak.horizon_s,
        predicted_by=peak.predicted_by,
    )


def _six_digits(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")
