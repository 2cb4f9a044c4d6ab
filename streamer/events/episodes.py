"""Episodes of surprise that a log speaks of and does not close, and the event that closes one.

An anticipation that belongs to an episode and the `surprise` event beside it are two appends.
Whoever makes them may be cut off between the two, or vanish while an episode is open. What a log
says is enough to close it: every `surprise` event says all of its episode, and every anticipation
names the one that it belongs to. Sans-I/O.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from typing import Any, Literal, Protocol

from streamer.clock import format_utc, parse_utc
from streamer.events.schema import SurpriseEpisodeBody

__all__ = [
    "CloseReason",
    "Entry",
    "closing_body",
    "has_anticipation",
    "speaks_of_episode",
    "unclosed",
]

CloseReason = Literal["restart", "stopped"]
"""The session that began it is gone, or was not heard of for a clip; it ends in order."""


class Entry(Protocol):
    """`streamer.store.protocol.LogEntry`, as far as it is needed here."""

    @property
    def seq(self) -> int: ...
    @property
    def body(self) -> bytes: ...


def speaks_of_episode(entries: Iterable[Entry], *, after_seq: int) -> bool:
    """Whether a clip whose anticipation came after `after_seq` belongs to an episode."""
    for entry in entries:
        event = _parsed(entry)
        if event.get("type") == "surprise":
            if event.get("anticipation", 0) > after_seq:
                return True
        elif _named(event) and entry.seq > after_seq:
            return True
    return False


def has_anticipation(entries: Iterable[Entry], *, capture_time: str) -> bool:
    """Whether one of these is the event of the clip with this newest frame."""
    told = b'"%s"' % capture_time.encode()
    for entry in entries:
        if told in entry.body:
            event = json.loads(entry.body)
            if event.get("type") == "anticipation" and event.get("capture_time") == capture_time:
                return True
    return False


def unclosed(entries: Iterable[Entry]) -> dict[str, SurpriseEpisodeBody]:
    """Episodes that these events of one log, in order, speak of last as open.

    Returns:
        By id, as they stand, oldest first.
    """
    found: dict[str, SurpriseEpisodeBody] = {}
    for entry in entries:
        event = _parsed(entry)
        # What another version wrote must not keep a stream from starting.
        with contextlib.suppress(KeyError, ValueError):
            if event.get("type") == "surprise":
                told = SurpriseEpisodeBody.model_validate(event)
                found.pop(told.episode, None)
                if told.phase != "end":
                    found[told.episode] = told
            elif name := _named(event):
                found[name] = _grown(found.get(name), event, seq=entry.seq)
    return found


def closing_body(
    episode: SurpriseEpisodeBody, *, reason: CloseReason, time_ns: int
) -> SurpriseEpisodeBody:
    """The event that closes an episode as it stands."""
    changes = {
        "time": format_utc(time_ns),
        "phase": "end",
        "reason": reason,
        "end": episode.window.end,
    }
    return episode.model_copy(update=changes)


def _parsed(entry: Entry) -> dict[str, Any]:
    if b'"episode"' not in entry.body:
        return {}
    event: dict[str, Any] = json.loads(entry.body)
    return event


def _named(anticipation: dict[str, Any]) -> str:
    surprise = anticipation.get("surprise") or {}
    name: str = surprise.get("episode") or ""
    return name


def _grown(
    episode: SurpriseEpisodeBody | None, event: dict[str, Any], *, seq: int
) -> SurpriseEpisodeBody:
    """An episode with one more of its anticipations, which may be all that is known of it."""
    surprise, captured = event["surprise"], event["capture_time"]
    start = episode.start if episode else captured
    peak = {
        "value": surprise["value"],
        "z": surprise["z"],
        "seq": seq,
        "capture_time": captured,
        "horizon_s": surprise["horizon_s"],
        "predicted_by": surprise["predicted_by"],
    }
    is_higher = episode is None or (surprise["z"] or 0.0) > episode.peak.z
    return SurpriseEpisodeBody.model_validate(
        {
            "stream": event["stream"],
            "time": event["time"],
            "phase": "update",
            "episode": surprise["episode"],
            "window": {"start": event["window"]["start"], "end": event["window"]["end"]},
            "start": start,
            "duration_s": max(0.0, round((parse_utc(captured) - parse_utc(start)) / 1e9, 6)),
            "peak": peak if is_higher or episode is None else episode.peak,
            "value": surprise["value"],
            "z": surprise["z"],
            "baseline": surprise["baseline"],
            "threshold": episode.threshold if episode else None,
            "anticipation": seq,
            "model": event["model"],
        }
    )
