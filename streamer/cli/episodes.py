"""Episodes of surprise for people: what of a stream's events says that it surprises, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamer.clock import parse_utc

__all__ = ["MARK", "EpisodeWatch", "episode_line", "episode_text"]

MARK = "▲"
"""In front of what surprises: colour is never the only sign."""
_WORDS = {"begin": "begins", "update": "goes on", "end": "is over"}

Event = Mapping[str, Any]


def episode_text(event: Event) -> str:
    """Of a `surprise` event: ``since 09:00:03.3 (17.0 s), peak z +12.0 at 09:00:08.3``."""
    peak = event["peak"]
    return (
        f"since {_moment(event['start'])} ({event['duration_s']:.1f} s), "
        f"peak z {peak['z']:+.1f} at {_moment(peak['capture_time'])}"
    )


def episode_line(event: Event) -> str:
    """Like ``demo #430  surprise is over: calm  since 09:00:03.3 (17.0 s), peak z ...``."""
    line = f"{event['stream']} #{event['seq']}  surprise {_WORDS[event['phase']]}"
    if event.get("reason"):
        line += f": {event['reason']}"
    return f"{line}  {episode_text(event)}"


class EpisodeWatch:
    """The open episode of one stream, as its messages tell. It may be joined in the middle."""

    def __init__(self) -> None:
        self._name: str | None = None
        self._told: dict[str, Any] | None = None
        """The newest event about it, grown by the anticipations since."""

    def take(self, message: Event) -> str:
        """A message of the feed. Returns a line when an episode ends with it, or nothing."""
        match message.get("type"):
            case "surprise":
                return self._take_event(message)
            case "anticipation":
                self._take_anticipation(message)
            case "gap" if message.get("reason") == "restart":
                self._name = self._told = None
        return ""

    def text(self) -> str:
        """What to show of the open episode; empty when there is none."""
        if self._name is None:
            return ""
        if self._told is None:
            return f"{MARK} surprise"
        return f"{MARK} surprise {episode_text(self._told)}"

    def _take_event(self, event: Event) -> str:
        if event["phase"] == "end":
            self._name = self._told = None
            return f"surprise is over ({event['reason']}): {episode_text(event)}"
        self._name, self._told = event["episode"], dict(event)
        return ""

    def _take_anticipation(self, event: Event) -> None:
        surprise = event["surprise"]
        if surprise is None:
            return
        name = surprise.get("episode")
        if name != self._name:
            self._name, self._told = name, None
        if self._told is None:
            return
        captured = event["window"]["end"]
        since_ns = parse_utc(captured) - parse_utc(self._told["start"])
        self._told["duration_s"] = since_ns / 1e9
        if surprise["z"] is not None and surprise["z"] > self._told["peak"]["z"]:
            self._told["peak"] = {"z": surprise["z"], "capture_time": captured}


def _moment(time: str) -> str:
    return time[11:21]
