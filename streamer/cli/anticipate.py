"""`streamer anticipate FILE`: the whole line over one file, in this process or on a server."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import ExitStack, closing, suppress
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamer.cli.output import ended_by_reader, wrapped
from streamer.cli.seconds import parse_seconds
from streamer.errors import ConfigError, NotFound, SourceError, StreamerError

if TYPE_CHECKING:
    from streamer.cli.playback_view import View
    from streamer.settings import Settings

__all__ = ["Mode", "Output", "anticipate"]

_MAX_NAME = 64


class Output(StrEnum):
    AUTO = "auto"
    TABLE = "table"
    NDJSON = "ndjson"


class Mode(StrEnum):
    CONTIGUOUS = "contiguous"
    GAP = "gap"


def anticipate(
    file: Annotated[Path, typer.Argument(help="Video file: mp4, mov, mkv, webm or ts.")],
    model: Annotated[str | None, typer.Option(help="Preset, folder or hub id (tiny).")] = None,
    horizons: Annotated[str | None, typer.Option(help="Seconds ahead, like 0.5,1,2.")] = None,
    mode: Annotated[Mode | None, typer.Option(help="How futures are predicted.")] = None,
    fps: Annotated[float | None, typer.Option(help="Frames per second of a clip (4).")] = None,
    stride: Annotated[float | None, typer.Option(help="Seconds between clips (1).")] = None,
    frames: Annotated[int | None, typer.Option(help="Frames per clip (64).")] = None,
    output: Annotated[
        Output, typer.Option(help="table on a terminal, else ndjson, unless given.")
    ] = Output.AUTO,
    out: Annotated[Path | None, typer.Option(help="Write the events here, too (NDJSON).")] = None,
    pictures: Annotated[
        Path | None, typer.Option(help="Folder for a PNG per anticipation: frame and latents.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Settings file (YAML).")] = None,
    server: Annotated[
        str | None, typer.Option(help="URL of a service that does the work; here if absent.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option("--token", envvar="STREAMER_TOKEN", help="Its access token, if asked for."),
    ] = None,
) -> None:
    """Anticipate one video file; without --server in this process.

    Example: streamer anticipate clip.mp4 --horizons 0.5,1,2 --output ndjson
    """
    if server is not None and (model is not None or config is not None):
        raise ConfigError("--model and --config do not go with --server, which has its own.")
    if server is not None and pictures is not None:
        raise ConfigError(
            "--pictures does not go with --server: of files sent to it a server makes no pictures."
            " Leave --server out to make them here."
        )
    horizons_s = parse_seconds(horizons)
    settings = None
    if server is None:
        options = {
            "model": {"name": model},
            "horizons_s": horizons_s,
            "mode": mode.value if mode else None,
            "sampling": {"fps": fps, "stride_s": stride, "frames": frames},
        }
        settings = _settings(config, options)
    if not file.exists():
        raise NotFound(f"There is no file {file}.")
    if file.is_dir():
        raise ConfigError(f"{file} is a folder; name one video file.")
    is_table = output is Output.TABLE or (output is Output.AUTO and sys.stdout.isatty())
    with ExitStack() as stack:
        copy = stack.enter_context(_opened(out)) if out else None
        stack.enter_context(ended_by_reader())
        if settings is not None:
            asyncio.run(_run(file, settings, is_table=is_table, copy=copy, pictures=pictures))
            return
        assert server is not None
        query = {
            "name": file.stem[:_MAX_NAME] or None,
            "horizons_s": ",".join(map(str, horizons_s)) if horizons_s else None,
            "mode": mode.value if mode else None,
            "fps": fps,
            "stride_s": stride,
            "frames": frames,
        }
        _ask(file, server, token=token, query=query, is_table=is_table, copy=copy)


def _settings(config: Path | None, options: dict[str, Any]) -> Settings:
    from streamer.settings import load_settings
    from streamer.telemetry import set_up_logging

    settings = load_settings(config=config, options=options)
    # A start and an end are nothing to log for a command that ends by itself.
    level = "warning" if settings.log.level == "info" else settings.log.level
    set_up_logging(level=level, format=settings.log.format)
    return settings


def _opened(path: Path) -> Any:
    try:
        return path.open("wb")
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}.") from error


async def _run(
    file: Path, settings: Settings, *, is_table: bool, copy: Any, pictures: Path | None
) -> None:
    # Before the imports: they and the model take seconds.
    _say(f"loading model {settings.model.name} ...")
    from streamer.cli.lines import untrained_warning
    from streamer.cli.picture_folder import PictureFolder
    from streamer.cli.playback_view import opened_view
    from streamer.playback import file_duration_s, opened_playback
    from streamer.sessions.ending import Ending

    duration_s = await file_duration_s(file, settings=settings)
    folder = None if pictures is None else PictureFolder(pictures)
    illustrate = None if folder is None else folder.save
    async with opened_playback(file, settings=settings, illustrate=illustrate) as playback:
        if not playback.model.trained:
            _say(untrained_warning(playback.model.name))
        _tell_rounded(settings, tubelet=playback.model.tubelet)
        with opened_view(is_table=is_table, name=file.name, duration_s=duration_s) as view:
            async for event in playback.events:
                _write(event, view, copy=copy)
    if folder is not None:
        _say(f"{folder.saved} pictures in {pictures}")
    if playback.session.result() is not Ending.ENDED:
        raise StreamerError(view.last_detail or "The file could not be read to its end.")


def _ask(
    file: Path,
    server: str,
    *,
    token: str | None,
    query: dict[str, Any],
    is_table: bool,
    copy: Any,
) -> None:
    from streamer.cli.client import ServerRefused
    from streamer.cli.lines import untrained_warning
    from streamer.cli.playback_view import opened_view
    from streamer.cli.upload import Uploader

    with (
        Uploader(server, token=token) as uploader,
        closing(uploader.anticipations(file, query=query)) as events,
    ):
        _say(f"sending {file.name} to {uploader.server} ...")
        first = next(events)  # what is refused is refused before there is a table
        length_s = _length_s(file)
        with opened_view(is_table=is_table, name=file.name, duration_s=length_s) as view:
            is_warned = False
            for event in chain([first], events):
                found = json.loads(event)
                if found["type"] == "error":
                    raise ServerRefused(found["message"])
                model = found.get("model")
                if model is not None and not model["trained"] and not is_warned:
                    is_warned = True
                    _say(untrained_warning(model["name"]))
                _write(event, view, copy=copy)


def _length_s(file: Path) -> float | None:
    """For the progress bar; what this machine cannot read, the server may."""
    from streamer.sources.file import FileSource

    source = FileSource(file, name=file.name)
    with suppress(SourceError):
        source.probe()
    return source.duration_s


def _tell_rounded(settings: Settings, *, tubelet: int) -> None:
    from streamer.futures.config import horizon_of, horizon_step

    fps = settings.sampling.fps
    for asked in settings.horizons_s:
        given = horizon_of(horizon_step(asked, fps=fps, tubelet=tubelet), fps=fps, tubelet=tubelet)
        if f"{asked:g}" != f"{given:g}":
            step = f"steps of {tubelet / fps:g} s"
            _say(f"horizon {asked:g} s became {given:g} s: the model predicts in {step}")


def _say(text: str) -> None:
    print(wrapped(text, stream=sys.stderr), file=sys.stderr, flush=True)


def _write(event: bytes, view: View, *, copy: Any) -> None:
    if copy is not None:
        copy.write(event + b"\n")
        copy.flush()
    view.show(event)
