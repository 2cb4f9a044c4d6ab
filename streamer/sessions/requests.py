"""A clip and its stream -> what the rollout side is asked for. Pure."""

from __future__ import annotations

from streamer.records import AnticipationRequest, Clip, Prior, StreamSpec, SurpriseState

__all__ = ["request_of"]


def request_of(
    clip: Clip,
    *,
    spec: StreamSpec,
    lease: str,
    untold: int,
    notes: tuple[str, ...],
    prior: Prior | None,
    surprise: SurpriseState,
) -> AnticipationRequest:
    """The clip without its pixels.

    Args:
        lease: token of the stream's lease.
        untold: clips thrown away since the last event.
        notes: besides those that the clip itself gives.
        prior, surprise: of the event before this one.
    """
    return AnticipationRequest(
        stream=clip.stream,
        lease=lease,
        mode=spec.mode,
        horizons_s=spec.horizons_s,
        clip=clip.index,
        start_ns=clip.start_ns,
        end_ns=clip.end_ns,
        frames=len(clip.frames),
        fps=clip.fps,
        first_frame=clip.first_frame,
        last_frame=clip.last_frame,
        last_tick=clip.last_tick,
        dropped=clip.dropped + _untold_ticks(clip, spec, untold),
        filled=clip.filled,
        padded=clip.padded,
        clock=clip.clock,
        generation=clip.generation,
        notes=_clip_notes(clip) + notes,
        decode_ms=clip.decode_ms,
        assemble_ms=clip.assemble_ms,
        surprise=surprise,
        prior=prior,
    )


def _untold_ticks(clip: Clip, spec: StreamSpec, untold: int) -> int:
    """Ticks of this window whose own clip was never published."""
    return min(len(clip.frames), untold * round(spec.sampling.stride_s * spec.sampling.fps))


def _clip_notes(clip: Clip) -> tuple[str, ...]:
    facts = {
        "degraded_fps": clip.degraded_fps,
        "clock_skewed": clip.clock_skewed,
        "padded": clip.padded > 0,
        "filled": clip.filled > 0,
    }
    return tuple(note for note, holds in facts.items() if holds)
