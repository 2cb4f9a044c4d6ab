"""Metrics through one two-method protocol, and logging that keeps its facts.

The library knows no metrics backend. Names are ``streamer_<noun>_<what>_<unit>`` in base units. A
shell passes its own `Meter` (``ray.serve.metrics`` under Ray); the default is `NullMeter`.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, TextIO

__all__ = ["JsonFormatter", "Meter", "NullMeter", "PlainFormatter", "set_up_logging"]

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


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


class JsonFormatter(logging.Formatter):
    """One JSON object per line; what a call gave as `extra` stands beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": _utc(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        } | _extra(record)
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False, default=str)


class PlainFormatter(logging.Formatter):
    """For people: time, level, message, then the facts as name=value."""

    def format(self, record: logging.LogRecord) -> str:
        facts = "".join(f" {name}={value}" for name, value in _extra(record).items())
        head = f"{_utc(record)[11:23]} {record.levelname.lower():7} {record.getMessage()}{facts}"
        if record.exc_info:
            head += "\n" + self.formatException(record.exc_info)
        return head


def set_up_logging(
    *,
    level: str = "info",
    format: Literal["auto", "plain", "json"] = "auto",
    stream: TextIO | None = None,
) -> None:
    """Send everything below the `streamer` logger to `stream`, in place of what was set up before.

    Args:
        level: least important level that is written.
        format: `auto` is plain on a terminal, JSON elsewhere.
        stream: None: standard error.
    """
    stream = stream or sys.stderr
    is_plain = format == "plain" or (format == "auto" and stream.isatty())
    handler = logging.StreamHandler(stream)
    handler.setFormatter(PlainFormatter() if is_plain else JsonFormatter())
    logger = logging.getLogger("streamer")
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


def _utc(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
