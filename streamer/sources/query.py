"""Options in the query of a source URL: known names only, each at most once, checked values."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl

from streamer.errors import ConfigError

__all__ = ["parse_options", "read_choice", "read_integer", "read_number"]

Options = Mapping[str, str]


def parse_options(query: str, *, known: Sequence[str]) -> dict[str, str]:
    """Split ``a=1&b=2``.

    Raises:
        ConfigError: a name that is unknown (with the nearest known one), repeated, or no value.
    """
    options: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ConfigError(
                f"The source option {name!r} is unknown; {hint}Known: {', '.join(known)}."
            )
        if name in options:
            raise ConfigError(f"The source option {name!r} is given twice; give it once.")
        if not value:
            raise ConfigError(f"The source option {name!r} has no value; write {name}=...")
        options[name] = value
    return options


def read_choice(options: Options, name: str, *, choices: Sequence[str]) -> str:
    """One of the choices; the first is the default."""
    value = options.get(name, choices[0])
    if value not in choices:
        raise ConfigError(f"The source option {name} is {value!r}; choose {' or '.join(choices)}.")
    return value


def read_integer(options: Options, name: str, *, default: int, low: int, high: int) -> int:
    """A whole number between two bounds."""
    text = options.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 18 and low <= int(text) <= high):
        raise ConfigError(
            f"The source option {name} is {text!r}; it is a whole number from {low} to {high}."
        )
    return int(text)


def read_number(options: Options, name: str, *, default: float, low: float, high: float) -> float:
    """A number between two bounds."""
    text = options.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not low <= value <= high:
        raise ConfigError(
            f"The source option {name} is {text!r}; it is a number from {low:g} to {high:g}."
        )
    return value
