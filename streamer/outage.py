"""One log line when something is away, one when it is back: not one with each try."""

from __future__ import annotations

import logging

from streamer.clock import monotonic_ns

__all__ = ["Outage"]


class Outage:
    """What one part of this process says of something that it needs and cannot reach.

    Args:
        log: of the part.
        lost: sentence at the first failure.
        back: sentence at the first success after it.
    """

    def __init__(self, log: logging.Logger, *, lost: str, back: str) -> None:
        self._log = log
        self._lost = lost
        self._back = back
        self._since_ns: int | None = None
        self._failures = 0

    def failed(self, error: str, **facts: object) -> None:
        """A try failed."""
        self._failures += 1
        if self._since_ns is None:
            self._since_ns = monotonic_ns()
            self._log.warning(self._lost, extra={"error": error} | facts)

    def went_well(self) -> None:
        """A try did not."""
        if self._since_ns is not None:
            away_s = round((monotonic_ns() - self._since_ns) / 1e9, 1)
            self._log.info(self._back, extra={"away_s": away_s, "failures": self._failures})
            self._since_ns, self._failures = None, 0
