"""TCP or UDP: which way a camera's pictures come, and when to try the other one. Sans-I/O."""

from __future__ import annotations

from typing import Literal, TypeAlias

__all__ = ["Transport", "TransportName"]

TransportName: TypeAlias = Literal["tcp", "udp"]

_BAD = ("decode_errors", "no_key_frame")


class Transport:
    """TCP, until several connections in a row brought no usable pictures; then UDP, and back after
    as many.

    Args:
        wanted: `auto`, or the one that is always taken.
        is_secure: an rtsps camera, whose pictures would lose their encryption by UDP.
        switch_after: so many bad connections in a row.
    """

    def __init__(
        self, wanted: Literal["auto", "tcp", "udp"], *, is_secure: bool, switch_after: int
    ) -> None:
        self.name: TransportName = "udp" if wanted == "udp" and not is_secure else "tcp"
        """For the next connection."""
        self._may_switch = wanted == "auto" and not is_secure
        self._switch_after = switch_after
        self._bad = 0

    def settled(self) -> None:
        """It works: what was bad before is forgotten."""
        self._bad = 0

    def ended(self, reason: str) -> bool:
        """A connection ended; says whether the next one goes the other way."""
        self._bad += reason in _BAD
        if not self._may_switch or self._bad < self._switch_after:
            return False
        self._bad = 0
        self.name = "udp" if self.name == "tcp" else "tcp"
        return True
