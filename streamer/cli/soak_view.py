"""What a soak shows while it runs, and its verdicts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from streamer.cli.output import wrapped

if TYPE_CHECKING:
    from streamer.bench.config import SoakConfig
    from streamer.bench.sample import Sample
    from streamer.bench.soak import SoakReport

__all__ = ["print_report", "progress", "sample_line", "say", "verdict_lines"]

_MARKS = {True: "✓", False: "✗", None: "·"}
_PLAIN_S = 30.0


@contextmanager
def progress(config: SoakConfig) -> Iterator[Callable[[Sample], None]]:
    """A bar with what is left on a terminal, else a line now and then, on stderr."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _plain_lines()
        return
    bar = Progress(BarColumn(bar_width=30), TimeElapsedColumn(), TimeRemainingColumn())
    task = bar.add_task("soak", total=config.seconds)
    now = Text()

    def show(sample: Sample) -> None:
        bar.update(task, completed=sample.at_s)
        now.plain = sample_line(sample)

    # Below the bar: beside it, it would cut the times.
    with Live(Group(bar, now), console=console, refresh_per_second=2):
        yield show


def _plain_lines() -> Callable[[Sample], None]:
    told_s = -_PLAIN_S

    def tell(sample: Sample) -> None:
        nonlocal told_s
        if sample.at_s - told_s >= _PLAIN_S:
            told_s = sample.at_s
            say(f"{sample.at_s:6.0f} s  {sample_line(sample)}")

    return tell


def sample_line(sample: Sample) -> str:
    """Like ``181 MB  12 threads  34 files  0.31 cores  age p50 0.09 s p95 0.12 s  0 dropped``."""
    parts = [
        (sample.memory_mb, "{:.0f} MB"),
        (sample.threads, "{} threads"),
        (sample.fds, "{} files"),
        (sample.cpu_cores, "{:.2f} cores"),
        (sample.object_store_mb, "store {:.0f} MB"),
        (sample.age_p50_s, "age p50 {:.3f} s"),
        (sample.age_p95_s, "p95 {:.3f} s"),
        (sample.drops.total, "{} dropped"),
    ]
    return "  ".join(form.format(value) for value, form in parts if value is not None)


def print_report(report: SoakReport) -> None:
    """Verdicts on stdout."""
    print("\n".join(verdict_lines(report)))


def verdict_lines(report: SoakReport) -> list[str]:
    """One line per promise, and the sum."""
    lines = [f"{_MARKS[each.ok]} {each.name}: {each.text}" for each in report.verdicts]
    minutes, planned = report.seconds / 60, report.config.minutes
    length = f"{minutes:.1f} min"
    if report.is_partial:
        length += f" of {planned:g}, ended early: a partial verdict"
    return [*lines, f"{_MARKS[report.ok]} soak of {length}: {'held' if report.ok else 'failed'}"]


def say(message: str) -> None:
    """To people, on stderr."""
    print(wrapped(f"streamer: {message}", stream=sys.stderr), file=sys.stderr, flush=True)
