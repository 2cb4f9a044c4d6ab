"""Streams as tables, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamer.cli.columns import fitting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamer.gateway.schema import StreamView

__all__ = ["print_stream", "print_streams"]

_WIDE = 200
_HEADS = ("ID", "STATE", "FPS IN/USED", "DROPPED", "LAG", "EVENTS", "MODEL", "SOURCE")
_NUMBERS = frozenset({2, 3, 4, 5})
_EXPENDABLE = (6, 7, 5, 3, 2, 4)
"""Model, source, events, dropped, rates, lag: in this order they are left out where it is narrow;
`streams show` has them all."""


def print_streams(views: Sequence[StreamView]) -> None:
    """One line each."""
    from rich.table import Table
    from rich.text import Text

    if not views:
        print("no streams yet; add one with: streamer streams add synthetic:bounce --id demo")
        return
    console = _console()
    rows = [_cells(view) for view in views]
    columns = list(zip(_HEADS, *rows, strict=True))
    kept = fitting(columns, width=console.width, expendable=_EXPENDABLE, between=2)
    table = Table(box=None, pad_edge=False)
    for i in kept:
        is_number = i in _NUMBERS
        table.add_column(_HEADS[i], overflow="fold", no_wrap=is_number)
    for row in rows:
        table.add_row(*(Text(row[i]) for i in kept))
    console.print(table)


def print_stream(view: StreamView) -> None:
    """All that is known of one."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in view.model_dump(exclude_none=True).items():
        if value not in ("", {}, []):
            table.add_row(name, Text(_shown(name, value)))
    _console().print(table)


def _shown(name: str, value: Any) -> str:
    if name == "horizons_s":
        return ", ".join(f"{each:g}" for each in value) + " s"
    if name == "lag_s":
        return f"{value:.3f}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {each}" for key, each in value.items())
    return str(value)


def _cells(view: StreamView) -> tuple[str, ...]:
    state = f"{view.state} ({view.reason})" if view.reason else view.state
    if view.need:
        state = f"{view.state} ({view.reason} {view.have}/{view.need})"
    rates, drops = view.rates, view.drops
    dropped = drops.dropped + drops.clips_superseded + drops.clips_rejected if drops else None
    return (
        view.id,
        state,
        f"{rates.fps_in:.1f}/{rates.fps_used:.1f}" if rates else "-",
        "-" if dropped is None else str(dropped),
        "-" if view.lag_s is None else f"{view.lag_s:.2f} s",
        str(view.head_seq),
        view.model.name if view.model else "-",
        view.source,
    )


def _console() -> Any:
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_WIDE)
