"""What scripts answer, in our words."""

from __future__ import annotations

from typing import Any, Final

from streamer.store.refusals import lease_lost, unknown_stream

__all__ = ["Word", "accept", "ms", "text"]


class Word:
    """First item of every answer."""

    OK: Final = b"ok"
    KNOWN: Final = b"known"
    UNKNOWN: Final = b"unknown"
    FULL: Final = b"full"
    HELD: Final = b"held"
    LOST: Final = b"lost"
    MISSING: Final = b"missing"
    STALE: Final = b"stale"


def accept(stream: str, answer: list[Any]) -> None:
    """Raises `NotFound` or `LeaseLost` if that is what the script says."""
    if answer[0] == Word.UNKNOWN:
        raise unknown_stream(stream)
    if answer[0] == Word.LOST:
        raise lease_lost(stream)


def ms(ttl_s: float) -> int:
    """Whole milliseconds, at least one."""
    return max(1, round(ttl_s * 1000))


def text(value: bytes) -> str:
    return value.decode()
