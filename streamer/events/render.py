"""Log bodies -> the bytes a subscriber gets: ``id`` and ``seq`` spliced in, thinned if asked.

The unfiltered path never parses: two byte strings are joined. What does need parsing (the type, a
thinned anticipation) is done once per event and option set and kept in small LRU caches; one
`Renderer` may serve all sessions of a process.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from streamer.clock import parse_utc
from streamer.events.cursor import format_cursor
from streamer.events.schema import FeedOptions

__all__ = ["Renderer", "event_type", "render"]

_SAME_HORIZON_S = 1e-3
_NO_MATTER = {"types": None, "max_rate_hz": None, "stats": None, "picture": None}
"""Options that do not change what an event looks like."""


def render(body: bytes, epoch: str, seq: int) -> bytes:
    """A log body (JSON object without ``id`` and ``seq``) -> the whole message, not parsed."""
    head = f'{{"id":"{format_cursor(epoch, seq)}","seq":{seq}'.encode()
    rest = body[1:]
    return head + rest if rest.lstrip()[:1] == b"}" else head + b"," + rest


def event_type(body: bytes) -> str:
    """The `type` of a log body; empty when it has none."""
    return _facts(body).type


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is parsed of an event that is not thinned."""

    type: str
    time_ns: int | None


def _facts(body: bytes) -> _Facts:
    event = json.loads(body)
    kind = event.get("type", "")
    try:
        time_ns = parse_utc(event["time"])
    except (KeyError, TypeError, ValueError):
        time_ns = None
    return _Facts(kind if isinstance(kind, str) else "", time_ns)


class Renderer:
    """`render` for every option set.

    Args:
        capacity: parsed types and thinned bodies kept, each; the least recently used goes first.
    """

    def __init__(self, *, capacity: int = 4096) -> None:
        self._facts = lru_cache(maxsize=capacity)(_facts)
        self._thin = lru_cache(maxsize=capacity)(_thin_body)

    def event_type(self, body: bytes) -> str:
        """As the function of that name."""
        return self._facts(body).type

    def time_ns(self, body: bytes) -> int | None:
        """When the event was appended, UTC nanoseconds; None when it does not say."""
        return self._facts(body).time_ns

    def is_wanted(self, body: bytes, options: FeedOptions) -> bool:
        """Whether these options let the event through at all."""
        return options.types is None or self.event_type(body) in options.types

    def render(self, body: bytes, epoch: str, seq: int, *, options: FeedOptions) -> bytes:
        """The message, thinned as these options want it (whether or not they want its type)."""
        if _thins(options) and self.event_type(body) == "anticipation":
            body = self._thin(body, options.model_copy(update=_NO_MATTER))
        return render(body, epoch, seq)


def _thins(options: FeedOptions) -> bool:
    chosen = (options.horizons_s, options.heads, options.top_k, options.min_score)
    return any(choice is not None for choice in chosen)


def _thin_body(body: bytes, options: FeedOptions) -> bytes:
    event: dict[str, Any] = json.loads(body)
    event["present"] = _thin_heads(event.get("present", {}), options)
    futures = event.get("futures", [])
    chosen = _chosen([future["horizon_s"] for future in futures], options)
    event["futures"] = [
        future | {"heads": _thin_heads(future.get("heads", {}), options)}
        for future in futures
        if future["horizon_s"] in chosen
    ]
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()


def _chosen(horizons_s: Sequence[float], options: FeedOptions) -> set[float]:
    """Of an event's rising horizons: for each that is wanted the next one, as streams round up."""
    if options.horizons_s is None:
        return set(horizons_s)
    found = (
        next((each for each in horizons_s if each > wanted - _SAME_HORIZON_S), None)
        for wanted in options.horizons_s
    )
    return {each for each in found if each is not None}


def _thin_heads(heads: dict[str, Any], options: FeedOptions) -> dict[str, Any]:
    return {
        head: _thin_labels(labels, options)
        for head, labels in heads.items()
        if options.heads is None or head in options.heads
    }


def _thin_labels(labels: list[dict[str, Any]], options: FeedOptions) -> list[dict[str, Any]]:
    floor = options.min_score
    kept = [label for label in labels if floor is None or label["score"] >= floor]
    return kept[: options.top_k]
