"""`streamer anticipate FILE`: the whole line over one file, in this process."""

from __future__ import annotations

import asyncio
import sys
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamer.cli.output import ended_by_reader
from streamer.errors import ConfigError, NotFound, StreamerError

if TYPE_CHECKING:
    from streamer.cli.playback_view import View
    from streamer.settings import Settings

__all__ = ["Mode", "Output", "anticipate"]


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
    config: Annotated[Path | None, typer.Option(help="Settings file (YAML).")] = None,
) -> None:
    """Anticipate one video file, without a server.

    Example: streamer anticipate clip.mp4 --horizons 0.5,1,2 --output ndjson
    """
    from streamer.settings import load_settings
    from streamer.telemetry import set_up_logging

    settings = load_settings(
        config=config,
        options={
            "model": {"name": model},
            "horizons_s": parse_horizons(horizons),
            "mode": mode.value if mode else None,
            "sampling": {"fps": fps, "stride_s": stride, "frames": frames},
        },
    )
    # A start and an end are nothing to log for a command that ends by itself.
    level = "warning" if settings.log.level == "info" else settings.log.level
    set_up_logging(level=level, format=settings.log.format)
    if not file.exists():
        raise NotFound(f"There is no file {file}.")
    if file.is_dir():
        raise ConfigError(f"{file} is a folder; name one video file.")
    is_table = output is Output.TABLE or (output is Output.AUTO and sys.stdout.isatty())
    with ExitStack() as stack:
        copy = stack.enter_context(_opened(out)) if out else None
        stack.enter_context(ended_by_reader())
        asyncio.run(_run(file, settings, is_table=is_table, copy=copy))


def parse_horizons(text: str | None) -> list[float] | None:
    """``0.5,1,2`` -> seconds.

    Raises:
        ConfigError: something in it is no number.
    """
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise ConfigError(f"--horizons is {text!r}; write seconds, like 0.5,1,2.") from error


def _opened(path: Path) -> Any:
    try:
        return path.open("wb")
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}.") from error


async def _run(file: Path, settings: Settings, *, is_table: bool, copy: Any) -> None:
    # Before the imports: they and the model take seconds.
    _say(f"loading model {settings.model.name} ...")
    from streamer.cli.lines import untrained_warning
    from streamer.cli.playback_view import opened_view
    from streamer.playback import file_duration_s, opened_playback
    from streamer.sessions.ending import Ending

    duration_s = await file_duration_s(file, settings=settings)
    async with opened_playback(file, settings=settings) as playback:
        if not playback.model.trained:
            _say(untrained_warning(playback.model.name))
        _tell_rounded(settings, tubelet=playback.model.tubelet)
        with opened_view(is_table=is_table, name=file.name, duration_s=duration_s) as view:
            async for event in playback.events:
                _write(event, view, copy=copy)
    if playback.session.result() is not Ending.ENDED:
        raise StreamerError(view.last_detail or "The file could not be read to its end.")


def _tell_rounded(settings: Settings, *, tubelet: int) -> None:
    from streamer.futures.config import horizon_of, horizon_step

    fps = settings.sampling.fps
    for asked in settings.horizons_s:
        given = horizon_of(horizon_step(asked, fps=fps, tubelet=tubelet), fps=fps, tubelet=tubelet)
        if f"{asked:g}" != f"{given:g}":
            step = f"steps of {tubelet / fps:g} s"
            _say(f"horizon {asked:g} s became {given:g} s: the model predicts in {step}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _write(event: bytes, view: View, *, copy: Any) -> None:
    if copy is not None:
        copy.write(event + b"\n")
        copy.flush()
    view.show(event)
