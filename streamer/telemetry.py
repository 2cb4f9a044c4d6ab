"""Metrics through one two-method protocol, and logging that keeps its facts.

The library knows no metrics backend; the names are those of `streamer.metrics`. A shell passes its
own `Meter` (`streamer.prometheus_meter`, ``ray.serve.metrics`` under Ray); the default is
`NullMeter`.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, TextIO

from streamer.metrics import lookup

__all__ = [
    "BothMeters",
    "JsonFormatter",
    "Meter",
    "NullMeter",
    "PlainFormatter",
    "set_up_logging",
    "tell",
]

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class Meter(Protocol):
    """Where numbers go. Every method raises `ValueError` for what `METRICS` does not know."""

    def add(self, name: str, value: float = 1.0, /, **labels: str) -> None:
        """Add to a counter; adding 0 makes it appear."""

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        """Put one value into a histogram, or set a gauge."""


class NullMeter:
    """Keeps nothing, but takes only what the others take."""

    def add(self, name: str, value: float = 1.0, /, **labels: str) -> None:
        lookup(name, labels, kinds=("counter",))

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        lookup(name, labels, kinds=("gauge", "histogram"))


class BothMeters:
    """Tells two meters."""

    def __init__(self, first: Meter, second: Meter) -> None:
        self._meters = (first, second)

    def add(self, name: str, value: float = 1.0, /, **labels: str) -> None:
        for meter in self._meters:
            meter.add(name, value, **labels)

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        for meter in self._meters:
            meter.observe(name, value, **labels)


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
    """Send everything below the `streamer` logger to `stream`, in place of what was set up before;
    and warnings of libraries that have no handler, which Python would print without a form.

    Args:
        level: least important level that is written.
        format: `auto` is plain on a terminal, JSON elsewhere.
        stream: None: standard error.
    """
    stream = stream or sys.stderr
    is_plain = format == "plain" or (format == "auto" and stream.isatty())
    formatter = PlainFormatter() if is_plain else JsonFormatter()
    handler, rest = logging.StreamHandler(stream), logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    rest.setFormatter(formatter)
    rest.setLevel(logging.WARNING)
    logging.lastResort = rest
    logger = logging.getLogger("streamer")
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False


def tell(message: str) -> None:
    """Something for whoever started this process, on stderr: a plain line, or a log line of any
    level where the log is JSON, so that no program that reads it meets two forms."""
    for handler in logging.getLogger("streamer").handlers:
        if isinstance(handler.formatter, JsonFormatter):
            record = logging.LogRecord("streamer", logging.INFO, "", 0, message, None, None)
            handler.emit(record)
            return
    print(f"streamer: {message}", file=sys.stderr, flush=True)  # noqa: T201 - for people


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    # Libraries mark records for themselves (Ray: `_ray_timestamp_ns`); that is no fact of ours.
    return {
        name: value
        for name, value in vars(record).items()
        if name not in _STANDARD and not name.startswith("_")
    }


def _utc(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
