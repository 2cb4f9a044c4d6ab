"""Streams as tables, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamer.gateway.schema import StreamView

__all__ = ["print_stream", "print_streams"]

_WIDE = 200


def print_streams(views: Sequence[StreamView]) -> None:
    """One line each."""
    from rich.table import Table
    from rich.text import Text

    if not views:
        print("no streams yet; add one with: streamer streams add synthetic:bounce --id demo")
        return
    table = Table(box=None, pad_edge=False)
    for name in ("ID", "STATE", "FPS IN/USED", "DROPPED", "LAG", "EVENTS", "MODEL", "SOURCE"):
        table.add_column(name, overflow="fold")
    for view in views:
        table.add_row(*(Text(cell) for cell in _cells(view)))
    _console().print(table)


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
