"""A place in one stream's log: the `id` of a retained event, ``<epoch>:<seq>``, or a bare seq."""

from __future__ import annotations

import re
from dataclasses import dataclass

from streamer.errors import ProtocolViolation

__all__ = ["Cursor", "format_cursor", "parse_cursor"]

_CURSOR = re.compile(r"(?:([0-9A-Za-z_-]{1,32}):)?([0-9]{1,15})", re.ASCII)
_MAX_SEQ = 10**15 - 1


@dataclass(frozen=True, slots=True)
class Cursor:
    """Go on after this event."""

    epoch: str | None
    """None: whatever the log's epoch is now."""
    seq: int
    """0: from the log's start."""

    def __str__(self) -> str:
        return str(self.seq) if self.epoch is None else format_cursor(self.epoch, self.seq)


def format_cursor(epoch: str, seq: int) -> str:
    """The `id` of a retained event."""
    return f"{epoch}:{seq}"


def parse_cursor(text: str | int) -> Cursor:
    """``"7f3a:418"``, ``"418"`` or ``418`` -> `Cursor`.

    Raises:
        ProtocolViolation: anything else.
    """
    if isinstance(text, int):
        if isinstance(text, bool) or not 0 <= text <= _MAX_SEQ:
            raise _violation(text)
        return Cursor(None, text)
    match = _CURSOR.fullmatch(text)
    if match is None:
        raise _violation(text)
    return Cursor(match[1], int(match[2]))


def _violation(text: str | int) -> ProtocolViolation:
    shown = repr(text)[:80]
    return ProtocolViolation(
        f"The cursor {shown} is neither an event id like '7f3a:418' nor a number from 0."
    )
