"""EPIC-KITCHENS-100 as upstream reads it: which frames of a video, which logit means what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from streamer.errors import ConfigError

__all__ = ["Ek100Labels", "clip_indices"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ek100Labels:
    """What the logits of a released EK100 probe stand for."""

    verbs: tuple[int, ...]
    """Verb class of each verb logit, ascending."""
    nouns: tuple[int, ...]
    actions: tuple[tuple[int, int], ...]
    """(verb, noun) of each action logit."""

    @classmethod
    def of_training_rows(cls, rows: Iterable[tuple[int, int]]) -> Ek100Labels:
        """The tables that upstream builds of its training csv.

        Args:
            rows: (verb_class, noun_class), one per row of the csv and in its order: the order of
                the actions is the iteration order of a Python set filled in that order (the same
                on 3.8 and later).

        Source: vjepa2 evals/action_anticipation_frozen/epickitchens.py::filter_annotations
            (c2963a4), identical.
        """
        pairs: set[tuple[int, int]] = set()
        for verb, noun in rows:
            pairs.add((int(verb), int(noun)))
        return cls(
            verbs=tuple(sorted({verb for verb, _ in pairs})),
            nouns=tuple(sorted({noun for _, noun in pairs})),
            actions=tuple(pairs),
        )


def clip_indices(
    *,
    start_frame: float,
    stop_frame: float,
    video_fps: float,
    fps: float,
    frames: int,
    anticipation_s: float,
    point: float = 0.0,
) -> list[int]:
    """Frames of the clip from which an action is to be anticipated.

    Args:
        start_frame, stop_frame: of the action.
        fps: wanted; the true rate is ``video_fps / int(video_fps / fps)``.
        anticipation_s: time between the clip and the anchor.
        point: 0 anchors at the action's *end*, as the released validation does; 1 at its start,
            which is the official protocol.

    Returns:
        `frames` numbers; those before the video's begin are 0.

    Raises:
        ConfigError: the video is slower than `fps`.

    Source: vjepa2 evals/action_anticipation_frozen/epickitchens.py::decode_videos_to_clips
        (c2963a4), identical.
    """
    step = int(video_fps / fps)
    if step < 1:
        raise ConfigError(f"A video of {video_fps:g} frames/s has no {fps:g} frames/s to give.")
    lead = int(anticipation_s * video_fps)
    anchor = int(start_frame * point + (1 - point) * stop_frame - lead)
    return [max(0, i) for i in range(anchor - step * frames, anchor, step)]
