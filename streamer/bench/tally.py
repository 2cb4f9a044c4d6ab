"""What one reader of a feed received, judged by the feed's own rules. Sans-I/O."""

from __future__ import annotations

from collections import Counter
from typing import Any

from streamer.clock import parse_utc

__all__ = ["Tally"]

_MOST_AGES = 100_000


class Tally:
    """Message after message in; ages, holes, repeats and told losses out."""

    def __init__(self) -> None:
        self.events = 0
        """Retained ones."""
        self.holes = 0
        """Numbers that did not come although no `gap` told so."""
        self.repeats = 0
        """Numbers that came again."""
        self.gaps: Counter[str] = Counter()
        """`gap` messages by reason."""
        self.told = 0
        """Events that a `gap` said will not come."""
        self.cursor: str | None = None
        """Go on after this one; None before anything came."""
        self.cuts: Counter[int] = Counter()
        """Close codes of connections that ended; 1006 without one."""
        self._ages: list[float] = []
        self._last: int | None = None

    def receive(self, message: dict[str, Any], *, now_ns: int) -> None:
        """Take one message of the server.

        Args:
            message: parsed.
            now_ns: UTC at its receipt.
        """
        match message["type"]:
            case "session.created" if self._last is None:
                head = message["streams"][0]
                self._last, self.cursor = head["head_seq"], f"{head['epoch']}:{head['head_seq']}"
            case "gap":
                self._take_gap(message)
            case _ if "seq" in message:
                self._take_event(message, now_ns=now_ns)

    def take_ages(self) -> list[float]:
        """Ages of the anticipations since the last call, seconds: receipt minus capture."""
        ages, self._ages = self._ages, []
        return ages

    def _take_gap(self, gap: dict[str, Any]) -> None:
        self.gaps[gap["reason"]] += 1
        self.told += max(0, gap["to_seq"] - gap["from_seq"] + 1)
        if gap["reason"] != "restart" and self._last is not None:
            self.holes += max(0, gap["from_seq"] - self._last - 1)
        self._last = gap["to_seq"]

    def _take_event(self, event: dict[str, Any], *, now_ns: int) -> None:
        seq, last = event["seq"], self._last
        if last is not None and seq <= last:
            self.repeats += 1
            return
        if last is not None:
            self.holes += seq - last - 1
        self._last, self.cursor = seq, event["id"]
        self.events += 1
        if event["type"] == "anticipation" and len(self._ages) < _MOST_AGES:
            self._ages.append((now_ns - parse_utc(event["capture_time"])) / 1e9)
