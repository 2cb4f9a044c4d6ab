"""Seconds as people write them on a command line."""

from __future__ import annotations

from streamer.errors import ConfigError

__all__ = ["parse_seconds"]


def parse_seconds(text: str | None, *, option: str = "--horizons") -> list[float] | None:
    """``0.5,1,2`` -> numbers; None stays None: not given.

    Raises:
        ConfigError: something in it is no number.
    """
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ConfigError(f"{option} is {text!r}; write seconds, like 0.5,1,2.") from None
