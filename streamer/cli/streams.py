"""`streamer streams`: streams of a running server: add, list, show, see, change, pause, remove."""

from __future__ import annotations

import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamer.cli.output import DEFAULT_SERVER, watch_command
from streamer.cli.seconds import parse_seconds
from streamer.cli.stream_views import print_stream, print_streams
from streamer.errors import ConfigError, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamer.cli.client import Client
    from streamer.gateway.schema import StreamView

__all__ = ["Mode", "Output", "ServerOption", "TokenOption", "app"]

app = typer.Typer(
    help="Add, list, show, change, pause and remove streams of a running server.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


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
HorizonsOption = Annotated[str | None, typer.Option(help="Seconds to look ahead, like 0.5,1,2.")]
FpsOption = Annotated[float | None, typer.Option(help="Frames per second the model sees.")]
StrideOption = Annotated[float | None, typer.Option(help="Seconds between clips.")]
FramesOption = Annotated[int | None, typer.Option(help="Frames per clip.")]
RetainOption = Annotated[float | None, typer.Option(help="Seconds that events are kept.")]


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
    horizons: HorizonsOption = None,
    fps: FpsOption = None,
    stride: StrideOption = None,
    frames: FramesOption = None,
    retain: RetainOption = None,
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
        horizons_s=parse_seconds(horizons),
        sampling=sampling or None,
        retain_s=retain,
    )
    with _client(server, token) as client:
        view = client.create_stream(body)
    if output is Output.AUTO and sys.stdout.isatty():
        print(
            f"{view.id} registered; {watch_command(view.id, server=server, has_tokens=bool(token))}"
        )
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


@app.command("set")
def set_stream(
    stream: StreamArgument,
    source: Annotated[str | None, typer.Option(help="Another URL or file.")] = None,
    model: Annotated[str | None, typer.Option(help="Another served model.")] = None,
    mode: Annotated[Mode | None, typer.Option(help="How the rollout goes on.")] = None,
    horizons: HorizonsOption = None,
    fps: FpsOption = None,
    stride: StrideOption = None,
    frames: FramesOption = None,
    retain: RetainOption = None,
    server: ServerOption = DEFAULT_SERVER,
    token: TokenOption = None,
    output: OutputOption = Output.AUTO,
) -> None:
    """Change a stream while it runs. Horizons, mode and retention come with its next clip; the
    others open its source again.

    Example: streamer streams set kitchen --horizons 0.5,4 --stride 0.5
    """
    body = _given(
        source=None if source is None else _source_url(source),
        model=model,
        mode=mode and mode.value,
        horizons_s=parse_seconds(horizons),
        sampling=_given(fps=fps, stride_s=stride, frames=frames) or None,
        retain_s=retain,
    )
    if not body:
        raise ConfigError("Say what to change, like --horizons 0.5,1,2; --help lists it all.")
    with _client(server, token) as client:
        _show([client.change_stream(stream, body)], output, is_list=False)


@app.command()
def snapshot(
    stream: StreamArgument,
    out: Annotated[Path | None, typer.Option(help="File to write; stdout in a pipe.")] = None,
    latent: Annotated[
        bool, typer.Option("--latent", help="Its latent and futures as colours, a PNG.")
    ] = False,
    at: Annotated[str | None, typer.Option(help="Of then or before, RFC 3339; else now.")] = None,
    server: ServerOption = DEFAULT_SERVER,
    token: TokenOption = None,
) -> None:
    """Save what the model sees, a JPEG.

    Example: streamer streams snapshot kitchen --out kitchen.jpg
    """
    if out is None and sys.stdout.isatty():
        raise ConfigError("Name a file with --out; a picture is nothing for a terminal.")
    with _client(server, token) as client:
        look = client.latent if latent else client.snapshot
        picture, captured = look(stream, at=at)
    if out is None:
        sys.stdout.buffer.write(picture)
        return
    try:
        out.write_bytes(picture)
    except OSError as error:
        raise ConfigError(f"{out} cannot be written: {error.strerror}.") from error
    print(f"{out}: {stream} at {captured}", file=sys.stderr)


@app.command()
def rm(
    streams: Annotated[list[str], typer.Argument(metavar="STREAM...", help="Their ids.")],
    server: ServerOption = DEFAULT_SERVER,
    token: TokenOption = None,
) -> None:
    """Stop streams and forget them; their events stay readable until they age out.

    Example: streamer streams rm kitchen door
    """
    missing = []
    with _client(server, token) as client:
        for stream in streams:
            try:
                client.delete_stream(stream)
            except NotFound as error:
                missing.append(error.message)
            else:
                print(f"removed {stream}", file=sys.stderr)
    if missing:
        raise NotFound(" ".join(missing))


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
    """Open a stream again that was paused, ended, failed or is quarantined.

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


def _show(views: Sequence[StreamView], output: Output, *, is_list: bool) -> None:
    if output is Output.JSON or (output is Output.AUTO and not sys.stdout.isatty()):
        texts = [view.model_dump_json() for view in views]
        print(f"[{','.join(texts)}]" if is_list else texts[0])
    elif is_list:
        print_streams(views)
    else:
        print_stream(views[0])
