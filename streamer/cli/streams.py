"""`streamer streams`: add, list, show, pause and remove streams of a running server."""

from __future__ import annotations

import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamer.cli.output import DEFAULT_SERVER, watch_command
from streamer.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamer.cli.client import Client
    from streamer.gateway.schema import StreamView

__all__ = ["Mode", "Output", "ServerOption", "TokenOption", "app"]

app = typer.Typer(
    help="Add, list, show, pause and remove streams of a running server.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_WIDE = 200


class Output(StrEnum):
    AUTO = "auto"
    TABLE = "table"
    JSON = "json"


class Mode(StrEnum):
    CONTIGUOUS = "contiguous"
    GAP = "gap"


ServerOption = Annotated[
    str, typer.Option("--server", envvar="STREAMER_SERVER", help="URL of the server.")
]
TokenOption = Annotated[
    str | None,
    typer.Option("--token", envvar="STREAMER_TOKEN", help="Access token, if asked for."),
]
OutputOption = Annotated[
    Output, typer.Option("--output", help="table on a terminal, else json, unless given.")
]
StreamArgument = Annotated[str, typer.Argument(help="Id of the stream.")]


@app.command()
def add(
    source: Annotated[
        str, typer.Argument(help="URL of a camera or synthetic world, or a file the server sees.")
    ],
    stream: Annotated[
        str | None, typer.Option("--id", help="Name of the stream; chosen if absent.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Served model; the only one if absent.")] = None,
    mode: Annotated[Mode, typer.Option(help="How the rollout goes on.")] = Mode.CONTIGUOUS,
    horizons: Annotated[
        str | None, typer.Option(help="Seconds to look ahead, like 0.5,1,2.")
    ] = None,
    fps: Annotated[float | None, typer.Option(help="Frames per second the model sees.")] = None,
    stride: Annotated[float | None, typer.Option(help="Seconds between clips.")] = None,
    frames: Annotated[int | None, typer.Option(help="Frames per clip.")] = None,
    retain: Annotated[float | None, typer.Option(help="Seconds that events are kept.")] = None,
    server: ServerOption = DEFAULT_SERVER,
    token: TokenOption = None,
    output: OutputOption = Output.AUTO,
) -> None:
    """Watch a source. With --id the command may be repeated.

    Example: streamer streams add rtsp://user:pass@192.0.2.7/main --id kitchen
    """
    sampling = _given(fps=fps, stride_s=stride, frames=frames)
    body = _given(
        id=stream,
        source=_source_url(source),
        model=model,
        mode=mode.value,
        horizons_s=None if horizons is None else _seconds(horizons),
        sampling=sampling or None,
        retain_s=retain,
    )
    with _client(server, token) as client:
        view = client.create_stream(body)
    if output is Output.AUTO and sys.stdout.isatty():
        print(f"{view.id} registered; {watch_command(view.id, server=server)}")
    else:
        _show([view], output, is_list=False)


@app.command("ls")
def list_streams(
    server: ServerOption = DEFAULT_SERVER,
    token: TokenOption = None,
    output: OutputOption = Output.AUTO,
) -> None:
    """List all streams.

    Example: streamer streams ls --output json
    """
    with _client(server, token) as client:
        _show(list(client.streams()), output, is_list=True)


@app.command()
def show(
    stream: StreamArgument,
    server: ServerOption = DEFAULT_SERVER,
    token: TokenOption = None,
    output: OutputOption = Output.AUTO,
) -> None:
    """Show one stream: settings, state, rates, drops, lag.

    Example: streamer streams show kitchen
    """
    with _client(server, token) as client:
        _show([client.stream(stream)], output, is_list=False)


@app.command()
def rm(
    stream: StreamArgument, server: ServerOption = DEFAULT_SERVER, token: TokenOption = None
) -> None:
    """Stop a stream and forget it; its events stay readable until they age out.

    Example: streamer streams rm kitchen
    """
    with _client(server, token) as client:
        client.delete_stream(stream)
    print(f"removed {stream}", file=sys.stderr)


@app.command()
def pause(
    stream: StreamArgument,
    server: ServerOption = DEFAULT_SERVER,
    token: TokenOption = None,
    output: OutputOption = Output.AUTO,
) -> None:
    """Let go of the camera and keep the events.

    Example: streamer streams pause kitchen
    """
    with _client(server, token) as client:
        _show([client.set_state(stream, "paused")], output, is_list=False)


@app.command("continue")
def continue_stream(
    stream: StreamArgument,
    server: ServerOption = DEFAULT_SERVER,
    token: TokenOption = None,
    output: OutputOption = Output.AUTO,
) -> None:
    """Open a stream again that was paused, ended or failed.

    Example: streamer streams continue kitchen
    """
    with _client(server, token) as client:
        _show([client.set_state(stream, "live")], output, is_list=False)


def _client(server: str, token: str | None) -> Client:
    from streamer.cli.client import Client

    return Client(server, token=token)


def _given(**values: Any) -> dict[str, Any]:
    """Only what was given: defaults are the server's."""
    return {name: value for name, value in values.items() if value is not None}


def _source_url(source: str) -> str:
    """A plain path becomes a `file:` URL; the server must see the same file."""
    if _SCHEME.match(source):
        return source
    path = Path(source).expanduser().resolve()
    if not path.is_file():
        raise ConfigError(
            f"There is no file {source!r}; other sources are URLs like rtsp://host/path."
        )
    return path.as_uri()


def _seconds(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(f"--horizons is {text!r}; write seconds like 0.5,1,2.") from None


def _show(views: Sequence[StreamView], output: Output, *, is_list: bool) -> None:
    if output is Output.JSON or (output is Output.AUTO and not sys.stdout.isatty()):
        texts = [view.model_dump_json() for view in views]
        print(f"[{','.join(texts)}]" if is_list else texts[0])
    elif is_list:
        _print_list(views)
    else:
        _print_one(views[0])


def _print_list(views: Sequence[StreamView]) -> None:
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


def _print_one(view: StreamView) -> None:
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
