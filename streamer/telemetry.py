"""Metrics through one two-method protocol, so that the library knows no metrics backend.

Names are ``streamer_<noun>_<what>_<unit>`` in base units. A shell passes its own `Meter`
(Prometheus in the local shell, ``ray.serve.metrics`` under Ray); the default is `NullMeter`.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["Meter", "NullMeter"]


class Meter(Protocol):
    """Where numbers go. Labels are plain keyword strings with bounded values."""

    def add(self, name: str, value: float = 1.0, /, **labels: str) -> None:
        """Add to a counter."""

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        """Put one value into a histogram (``_seconds``, ``_size``) or set a gauge (the rest)."""


class NullMeter:
    """Keeps nothing."""

    def add(self, name: str, value: float = 1.0, /, **labels: str) -> None: ...

    def observe(self, name: str, value: float, /, **labels: str) -> None: ...
