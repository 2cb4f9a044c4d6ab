"""Clips that gave no event: each is a number in the status, several in a row are told."""

from __future__ import annotations

from typing import Protocol

from streamer.errors import NumericalError, StreamerError
from streamer.records import SourceState

__all__ = ["Refusals", "Teller"]

_LIVE = SourceState(state="live")


class Teller(Protocol):
    """Of `streamer.sessions.announcer.Announcer`, what is needed here."""

    state: SourceState

    def report(self, state: SourceState) -> None: ...


class Refusals:
    """Counts what was refused since the last event.

    Speaks only while the source has nothing of its own to say: a camera that is away explains
    missing events by itself.

    Args:
        teller: takes what is said.
        told_from: so many in a row are said.
    """

    def __init__(self, teller: Teller, *, told_from: int) -> None:
        self.in_a_row = 0
        self._teller = teller
        self._told_from = told_from
        self._told: SourceState | None = None

    def refused(self, error: StreamerError) -> None:
        """One more."""
        self.in_a_row += 1
        if self.in_a_row >= self._told_from and self._teller.state in (_LIVE, self._told):
            self._told = SourceState(state="live", reason="rejected", detail=_detail(error))
            self._teller.report(self._told)

    def published(self) -> None:
        """An event again."""
        self.in_a_row = 0
        if self._told is not None and self._teller.state == self._told:
            self._teller.report(_LIVE)
        self._told = None


def _detail(error: StreamerError) -> str:
    """Without the clip's own facts, or each clip would be told anew."""
    if isinstance(error, NumericalError):
        return (
            "The model gives no finite numbers for the clips of this stream, so none is published. "
            "Check its weights and its dtype."
        )
    return (
        "There is no room for the clips of this stream, in the models or in the store, so none is "
        "published for now."
    )
