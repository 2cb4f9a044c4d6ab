"""`streamer bench`: measure a service over time."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote, urlsplit

import typer

from streamer.errors import ConfigError

if TYPE_CHECKING:
    from streamer.bench.config import SoakConfig
    from streamer.bench.soak import Place, SoakReport

__all__ = ["Output", "Runtime", "app", "report_json"]

app = typer.Typer(
    help="Measure a service.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Runtime(StrEnum):
    LOCAL = "local"
    RAY = "ray"


class Output(StrEnum):
    TEXT = "text"
    JSON = "json"


@app.callback()
def _root() -> None:
    """Measure a service."""


@app.command("soak")
def soak(
    minutes: Annotated[float, typer.Option(help="How long, a warm-up of a fifth included.")] = 30.0,
    runtime: Annotated[
        Runtime, typer.Option(help="Which service to start; without --server.")
    ] = Runtime.LOCAL,
    server: Annotated[
        str | None, typer.Option(help="URL of a running service to measure instead.")
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar="STREAMER_TOKEN", help="Access token of that service.")
    ] = None,
    streams: Annotated[int, typer.Option(help="Live streams at once.")] = 1,
    source: Annotated[
        str | None, typer.Option(help="What they watch (a synthetic camera of 25 fps).")
    ] = None,
    stride_s: Annotated[
        float, typer.Option("--stride", help="Seconds between events of a stream.")
    ] = 0.5,
    model: Annotated[str, typer.Option(help="Preset, folder or hub id.")] = "tiny",
    sample_s: Annotated[float, typer.Option("--sample", help="Seconds between two looks.")] = 5.0,
    max_mb_per_h: Annotated[float, typer.Option(help="Memory may grow by so much.")] = 25.0,
    max_age_s: Annotated[float, typer.Option(help="p95 of the events' age, seconds.")] = 5.0,
    plot: Annotated[Path | None, typer.Option(help="Picture to write, .svg.")] = None,
    output: Annotated[Output, typer.Option(help="Verdicts as text, or one JSON object.")] = (
        Output.TEXT
    ),
) -> None:
    """Run live streams for a long time and say whether anything grows: memory, age, threads, files.

    One reader keeps up with the feed, another one does not; that one must be told what it misses.
    Ctrl-C ends early, with a verdict over what there is.

    Example: streamer bench soak --minutes 30 --plot soak.svg
    """
    from streamer.bench.config import CAMERA, SoakBounds, SoakConfig
    from streamer.cli.soak_view import print_report

    bounds = SoakBounds(memory_mb_per_h=max_mb_per_h, age_s=max_age_s)
    config = SoakConfig(
        minutes=minutes,
        streams=streams,
        source=source or CAMERA,
        stride_s=stride_s,
        sample_s=sample_s,
        bounds=bounds,
    )
    _check_plot(plot)
    report = asyncio.run(_soak(config, runtime=runtime, model=model, server=server, token=token))
    if plot is not None:
        _write_plot(report, plot)
    if output is Output.JSON:
        print(json.dumps(report_json(report)))
    else:
        print_report(report)
    raise typer.Exit(0 if report.ok else 1)


def report_json(report: SoakReport) -> dict[str, Any]:
    """The whole report, rows included, as one JSON object."""
    return {
        "bench": "soak",
        "ok": report.ok,
        "partial": report.is_partial,
        "seconds": round(report.seconds, 1),
        "config": asdict(report.config),
        "verdicts": [asdict(verdict) for verdict in report.verdicts],
        "samples": [sample.as_json() for sample in report.samples],
    }


async def _soak(
    config: SoakConfig,
    *,
    runtime: Runtime,
    model: str,
    server: str | None,
    token: str | None,
) -> SoakReport:
    from streamer.bench.soak import run_soak
    from streamer.cli.soak_view import progress, say

    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, _on_interrupt, stop)
    async with _place(config, runtime=runtime, model=model, server=server, token=token) as place:
        where = server or f"a {runtime} service of its own, process {place.pid}"
        say(f"soaking {where}, for {config.minutes:g} min; Ctrl-C ends early with a verdict")
        with progress(config) as on_sample:
            name = f"soak-{os.getpid()}"
            return await run_soak(config, place, name=name, stop=stop, on_sample=on_sample)


def _on_interrupt(stop: asyncio.Event) -> None:
    if stop.is_set():
        raise KeyboardInterrupt
    stop.set()


@asynccontextmanager
async def _place(
    config: SoakConfig, *, runtime: Runtime, model: str, server: str | None, token: str | None
) -> AsyncIterator[Place]:
    """The running service that was named, or one started for this."""
    from streamer.bench.processes import process_tree
    from streamer.bench.service import started_service
    from streamer.bench.soak import Place
    from streamer.cli.client import bearer, check_server
    from streamer.cli.soak_view import say

    if server is not None:
        yield Place(url=check_server(server), headers=bearer(token))
        return
    say(f"starting a {runtime} service ...")
    async with started_service(
        runtime=runtime.value, model=model, folder=_folder(config.source)
    ) as service:
        store = None
        if runtime is Runtime.RAY:
            from deployments.object_store import find_object_store

            store = await asyncio.to_thread(find_object_store, process_tree(service.pid))
        yield Place(
            url=service.url,
            headers={},
            pid=service.pid,
            ended=service.why_ended,
            object_store=store,
        )


def _folder(source: str) -> str:
    """The folder that a service must be allowed to read for this source; empty for none."""
    parts = urlsplit(source)
    return str(Path(unquote(parts.path)).parent) if parts.scheme == "file" else ""


def _check_plot(plot: Path | None) -> None:
    if plot is None:
        return
    if plot.suffix != ".svg":
        raise ConfigError(f"--plot is {str(plot)!r}; the picture is SVG, so name it soak.svg.")
    if not plot.absolute().parent.is_dir() or plot.is_dir():
        raise ConfigError(f"Cannot write {plot}: its folder is missing, or it is a folder itself.")


def _write_plot(report: SoakReport, plot: Path) -> None:
    from streamer.bench.plot import soak_svg
    from streamer.cli.soak_view import say

    title = f"streamer bench soak: {report.seconds / 60:.1f} min of {report.config.minutes:g}"
    warm_up_s = report.config.warm_up_s
    plot.write_text(soak_svg(report.samples, title=title, warm_up_s=warm_up_s))
    say(f"wrote {plot}")
