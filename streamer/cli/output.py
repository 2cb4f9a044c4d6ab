"""What commands share about standard output and the server's address. Imports nothing heavy."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["DEFAULT_SERVER", "ended_by_reader", "watch_command"]

DEFAULT_SERVER = "http://127.0.0.1:8000"


@contextmanager
def ended_by_reader() -> Iterator[None]:
    """Leave quietly when whoever reads our output has enough of it, like `| head -1`."""
    try:
        yield
    except BrokenPipeError:
        # Keep the interpreter from flushing into the closed pipe when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def watch_command(stream: str, *, server: str) -> str:
    """What to type to follow `stream`."""
    command = f"streamer watch {stream}"
    return command if server == DEFAULT_SERVER else f"{command} --server {server}"
