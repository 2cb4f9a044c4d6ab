"""What was computed -> the body of one `anticipation` event. Pure: no clock, no tensors."""

from __future__ import annotations

from typing import Final, get_args

from streamer.clock import format_utc
from streamer.events.parts import (
    FutureLabels,
    LatencyMs,
    ModelRef,
    Note,
    Surprise,
    Window,
)
from streamer.events.schema import AnticipationBody
from streamer.futures.config import future_offsets_s, horizon_step
from streamer.futures.surprise import Score
from streamer.records import AnticipationRequest, ModelInfo, Prior

__all__ = ["anticipation_body", "future_labels", "latency_ms", "notes_of", "surprise_of"]

_NOTES: Final[tuple[Note, ...]] = get_args(Note)
"""In the order in which events list them."""


def anticipation_body(
    request: AnticipationRequest,
    *,
    model: ModelInfo,
    futures: list[FutureLabels],
    surprise: Surprise | None,
    latency: LatencyMs,
    notes: list[Note],
    now_ns: int,
) -> AnticipationBody:
    """Put the parts together.

    Args:
        now_ns: UTC, when the event is appended.
    """
    return AnticipationBody(
        stream=request.stream,
        time=format_utc(now_ns),
        capture_time=format_utc(request.end_ns),
        capture_clock=request.clock,
        window=_window(request),
        futures=futures,
        surprise=surprise,
        latency_ms=latency,
        model=ModelRef(name=model.name, fingerprint=model.fingerprint, trained=model.trained),
        notes=notes,
    )


def future_labels(
    request: AnticipationRequest, *, horizon_s: float, drift: float, tubelet: int
) -> FutureLabels:
    """One horizon with the capture times of its first and last frame."""
    step = horizon_step(horizon_s, fps=request.fps, tubelet=tubelet)
    first_s, last_s = future_offsets_s(step, fps=request.fps, tubelet=tubelet)
    return FutureLabels(
        horizon_s=horizon_s,
        start=format_utc(request.end_ns + round(first_s * 1e9)),
        end=format_utc(request.end_ns + round(last_s * 1e9)),
        drift=_six_digits(drift),
    )


def surprise_of(score: Score, *, prior: Prior, row: int, episode: str | None) -> Surprise:
    """A judgement of the future in row `row` of the prior.

    Args:
        episode: id of the one that the clip belongs to.
    """
    return Surprise(
        value=_six_digits(score.value),
        z=None if score.z is None else _six_digits(score.z),
        baseline=None if score.baseline is None else _six_digits(score.baseline),
        horizon_s=prior.horizons_s[row],
        predicted_by=prior.seq,
        episode=episode,
    )


def latency_ms(
    request: AnticipationRequest,
    *,
    queue_ms: float,
    encode_ms: float,
    rollout_ms: float,
    now_ns: int,
) -> LatencyMs:
    """Durations that sum to `total` exactly as printed.

    The capture times of a file are no part of today: there `total` is the sum of what was measured.
    """
    parts = {
        "decode": round(request.decode_ms, 3),
        "assemble": round(request.assemble_ms, 3),
        "queue": round(queue_ms, 3),
        "encode": round(encode_ms, 3),
        "rollout": round(rollout_ms, 3),
        "probe": 0.0,
    }
    measured = sum(parts.values())
    is_file = request.clock == "file"
    total = round(measured if is_file else (now_ns - request.end_ns) / 1e6, 3)
    transfer = 0.0 if is_file else round(total - measured, 3)
    return LatencyMs(**parts, transfer=transfer, total=total)


def notes_of(
    request: AnticipationRequest,
    *,
    is_trained: bool,
    is_extrapolated: bool,
    is_prior_lost: bool,
    is_superseded: bool,
) -> list[Note]:
    """Codes that qualify the event, those of the request included, in one fixed order."""
    found: set[str] = set(request.notes)
    found |= _named(
        ("extrapolated", is_extrapolated),
        ("padded", request.padded > 0),
        ("filled", request.filled > 0),
        ("untrained", not is_trained),
        ("prior_lost", is_prior_lost),
        ("superseded", is_superseded),
    )
    return [note for note in _NOTES if note in found]


def _named(*facts: tuple[str, bool]) -> set[str]:
    return {name for name, holds in facts if holds}


def _window(request: AnticipationRequest) -> Window:
    return Window(
        start=format_utc(request.start_ns),
        end=format_utc(request.end_ns),
        frames=request.frames,
        fps=_six_digits(request.fps),
        first_frame=request.first_frame,
        last_frame=request.last_frame,
        dropped=request.dropped,
        filled=request.filled,
    )


def _six_digits(value: float) -> float:
    return float(f"{value:.6g}")
