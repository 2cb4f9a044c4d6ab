"""What commands share about standard output and the server's address. Imports nothing heavy."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

__all__ = ["DEFAULT_SERVER", "ended_by_reader", "place_options", "watch_command", "wrapped"]

DEFAULT_SERVER = "http://127.0.0.1:8000"


@contextmanager
def ended_by_reader() -> Iterator[None]:
    """Leave quietly when whoever reads our output has enough of it, like `| head -1`."""
    try:
        yield
    except BrokenPipeError:
        # Keep the interpreter from flushing into the closed pipe when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def watch_command(stream: str, *, server: str, has_tokens: bool = False) -> str:
    """What to type to follow `stream`."""
    return f"streamer watch {stream}{place_options(server, has_tokens=has_tokens)}"


def place_options(server: str, *, has_tokens: bool) -> str:
    """What a command needs to reach `server`, with a blank before it."""
    place = "" if server == DEFAULT_SERVER else f" --server {server}"
    is_set = not has_tokens or bool(os.environ.get("STREAMER_TOKEN"))
    return place if is_set else f"{place} --token TOKEN"


def wrapped(line: str, *, stream: TextIO) -> str:
    """Broken between words where a terminal would break it inside one; elsewhere as it is."""
    if not stream.isatty():
        return line
    return textwrap.fill(
        line,
        width=shutil.get_terminal_size().columns,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
