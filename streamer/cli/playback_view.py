"""What `streamer anticipate` shows while it works: a table or NDJSON, and how far it is."""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from streamer.cli.columns import fitting
from streamer.cli.episodes import MARK, EpisodeWatch
from streamer.clock import monotonic_ns, parse_utc

__all__ = ["View", "opened_view"]

_ROWS = 15
_EPISODES = 3


class View:
    """Takes events, keeps the newest rows, or all for a table at the end. Data goes to stdout,
    everything else to stderr."""

    def __init__(self, *, is_table: bool, name: str, duration_s: float | None) -> None:
        self.last_detail = ""
        """Sentence of the newest state change."""
        self._is_table = is_table
        self._name = name
        # Whole only where the table comes at the end.
        keeps_all = is_table and not sys.stderr.isatty()
        self._rows: deque[Mapping[str, Any]] = deque(maxlen=None if keeps_all else _ROWS)
        self._episodes = EpisodeWatch()
        self._over: deque[str] = deque(maxlen=None if keeps_all else _EPISODES)
        self._began_ns = monotonic_ns()
        self._start_ns: int | None = None
        self._done_s = 0.0
        self._count = 0
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:.1f} of {task.total:.1f} s"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
        )
        self._task = self._progress.add_task(
            name, total=duration_s, rate="", visible=bool(duration_s)
        )

    def show(self, event: bytes) -> None:
        """Take one event, a whole JSON message."""
        if not self._is_table:
            sys.stdout.buffer.write(event + b"\n")
            sys.stdout.buffer.flush()
        found = json.loads(event)
        if ended := self._episodes.take(found):
            self._over.append(ended)
        if found["type"] == "stream.state":
            self.last_detail = found["detail"]
            if found["state"] == "ended":
                self._complete()
        if found["type"] == "anticipation":
            self._count += 1
            self._rows.append(found)
            self._advance(found["window"])

    def render(self) -> RenderableType:
        """Table and progress, as they stand."""
        if not self._is_table:
            return self._progress
        return Group(*self.tables(width=Console(stderr=True).width), self._progress)

    def tables(self, *, width: int = 200) -> list[RenderableType]:
        """The table, and the episodes of surprise under it."""
        lines = [Text(line) for line in self._over]
        if now := self._episodes.text():
            lines.append(Text(now, style="bold red"))
        return [self.table(width=width), *lines]

    def table(self, *, width: int = 200) -> Table:
        """The newest anticipations, one row each, with the columns that fit."""
        horizons = [f["horizon_s"] for f in self._rows[-1]["futures"]] if self._rows else []
        table = Table(caption="drift: how much each future differs from the step before it")
        heads = ["seq", "until", "surprise", "z", *(f"+{h:g} s" for h in horizons), "ms", "notes"]
        rows = [_cells(row) for row in self._rows]
        kept = fitting(
            [[head, *(row[i] for row in rows if i < len(row))] for i, head in enumerate(heads)],
            width=width,
            expendable=_expendable(len(heads)),
            between=3,
            edges=4,
        )
        for i in kept:
            is_last = i == len(heads) - 1
            table.add_column(heads[i], justify="left" if is_last else "right", no_wrap=not is_last)
        for row in rows:
            table.add_row(*(row[i] for i in kept if i < len(row)))
        return table

    def summary(self) -> str:
        spent_s = (monotonic_ns() - self._began_ns) / 1e9
        speed = self._done_s / spent_s if spent_s else 0.0
        noun = "anticipation" if self._count == 1 else "anticipations"
        return (
            f"{self._name}: {self._count} {noun} over {self._done_s:.1f} s of video"
            f" in {spent_s:.1f} s ({speed:.1f}x real time)"
        )

    def _complete(self) -> None:
        """The last clip ends before the file does: what is left is too short for another one."""
        task = self._progress.tasks[0]
        if task.total:
            self._progress.update(self._task, completed=task.total)

    def _advance(self, window: Mapping[str, Any]) -> None:
        if self._start_ns is None:
            self._start_ns = parse_utc(window["start"])
        self._done_s = (parse_utc(window["end"]) - self._start_ns) / 1e9
        spent_s = (monotonic_ns() - self._began_ns) / 1e9
        rate = f"{self._done_s / spent_s:.1f}x real time" if spent_s else ""
        self._progress.update(self._task, completed=self._done_s, rate=rate)


@contextmanager
def opened_view(*, is_table: bool, name: str, duration_s: float | None) -> Iterator[View]:
    """A view, live on a terminal; elsewhere its table and summary come at the end."""
    view = View(is_table=is_table, name=name, duration_s=duration_s)
    errors = Console(stderr=True)
    if errors.is_terminal:
        with Live(get_renderable=view.render, console=errors, refresh_per_second=4):
            yield view
    else:
        yield view
        if is_table:
            console = Console()
            console.print(*view.tables(width=console.width), sep="\n")
    errors.print(view.summary(), highlight=False)


def _expendable(count: int) -> list[int]:
    """Of that many columns, the least needed first: ms, until, notes, z, seq, then the horizons
    from the furthest on."""
    return [count - 2, 1, count - 1, 3, 0, *range(count - 3, 4, -1)]


def _cells(event: Mapping[str, Any]) -> list[str]:
    surprise = event["surprise"] or {}
    return [
        str(event["seq"]),
        event["window"]["end"][11:21],
        _number(surprise.get("value"), "{:.3f}"),
        _number(surprise.get("z"), f"{MARK} {{:+.1f}}" if surprise.get("episode") else "{:+.1f}"),
        *(f"{future['drift']:.3f}" for future in event["futures"]),
        f"{event['latency_ms']['total']:.0f}",
        ", ".join(event["notes"]),
    ]


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)
