"""How a training looks while it runs: a bar with rate and time left, or plain lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from streamer.clock import monotonic_ns

if TYPE_CHECKING:
    from streamer.training.pretrain import Progress

__all__ = ["TrainingView", "opened_view"]

_PLAIN_EVERY_S = 10.0


class TrainingView(Protocol):
    def show(self, progress: Progress) -> None:
        """One step was done."""


@contextmanager
def opened_view(*, total: int, done: int) -> Iterator[TrainingView]:
    """On stderr; a bar only on a terminal.

    Args:
        done: steps of an earlier run.
    """
    if not sys.stderr.isatty():
        yield _Lines(total)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    with Bar(
        TextColumn("step"),
        MofNCompleteColumn(),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("loss {task.fields[loss]}"),
        console=Console(stderr=True),
    ) as bar:
        task = bar.add_task("", total=total, completed=done, loss="")

        class _Bar:
            def show(self, progress: Progress) -> None:
                bar.update(task, completed=progress.step, loss=f"{progress.loss:.4f}")

        yield _Bar()


class _Lines:
    def __init__(self, total: int) -> None:
        self._total = total
        self._said_ns = 0

    def show(self, progress: Progress) -> None:
        now_ns = monotonic_ns()
        is_due = now_ns - self._said_ns > _PLAIN_EVERY_S * 1e9
        if is_due or progress.step == self._total:
            self._said_ns = now_ns
            print(
                f"step {progress.step}/{self._total} loss {progress.loss:.4f} lr {progress.lr:.2e}",
                file=sys.stderr,
                flush=True,
            )
