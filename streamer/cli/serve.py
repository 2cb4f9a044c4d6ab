"""`streamer serve`: the whole service, on Ray Serve or in this process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamer.cli.output import place_options, watch_command, wrapped
from streamer.errors import CapacityError, NotFound
from streamer.telemetry import tell

if TYPE_CHECKING:
    from streamer.runtime import Ready
    from streamer.settings import Settings
    from streamer.store.protocol import Store

__all__ = [
    "DEMO_SOURCE",
    "DEMO_STREAM",
    "Runtime",
    "print_demo_event",
    "print_urls",
    "serve",
    "show_demo",
]

DEMO_STREAM = "demo"
DEMO_SOURCE = "synthetic:bounce?seed=1&fps=15&size=96"
_DEMO_LINES = 10
_WAIT_S = 5.0
_AGAIN_S = 1.0


class Runtime(StrEnum):
    RAY = "ray"
    LOCAL = "local"


def serve(
    runtime: Annotated[
        Runtime, typer.Option(help="ray: a cluster of replicas; local: one process.")
    ] = Runtime.RAY,
    demo: Annotated[
        bool, typer.Option("--demo", help="Register a synthetic camera and show what comes.")
    ] = False,
    model: Annotated[str | None, typer.Option(help="Preset, folder or hub id (tiny).")] = None,
    host: Annotated[str | None, typer.Option(help="Address to bind (127.0.0.1).")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one (8000).")] = None,
    config: Annotated[Path | None, typer.Option(help="Settings file (YAML).")] = None,
) -> None:
    """Start the service. Ctrl-C once drains it, twice stops it.

    Example: streamer serve --demo --runtime local
    """
    from streamer.settings import load_settings
    from streamer.telemetry import set_up_logging

    settings = load_settings(
        config=config,
        options={"model": {"name": model}, "server": {"host": host, "port": port}},
    )
    set_up_logging(level=settings.log.level, format=settings.log.format)
    if runtime is Runtime.RAY:
        from deployments.launch import serve_ray

        serve_ray(settings, on_ready=_on_ready(settings, demo=demo))
    else:
        asyncio.run(_serve_local(settings, demo=demo))


def _on_ready(settings: Settings, *, demo: bool) -> Ready:
    from streamer.cli.lines import untrained_warning

    async def on_ready(store: Store, url: str) -> None:
        for encoder in await store.present("encoder"):
            if encoder.model and not encoder.model.trained:
                tell(untrained_warning(encoder.model.name))
                break
        has_tokens = bool(settings.gateway.tokens_file)
        print_urls(url, demo=demo, has_tokens=has_tokens)
        if settings.server.host in ("0.0.0.0", "::"):
            tell("listens on all addresses; from elsewhere write this machine's name instead")
        if demo:
            await show_demo(store, settings, url=url)

    return on_ready


async def show_demo(
    store: Store, settings: Settings, *, url: str, again_s: float = _AGAIN_S
) -> None:
    """Register the demo and show its first events. A store that was away, or came back empty, gets
    it again; one that somebody removed stays away.

    Cancellation is safe.
    """
    is_told = False
    while True:
        epoch = ""
        try:
            epoch = await store.epoch()
            await store.create_stream(DEMO_STREAM, settings.stream_spec(DEMO_SOURCE))
            is_told = False
            return await _show_first(store, url=url, has_tokens=bool(settings.gateway.tokens_file))
        except CapacityError as error:
            if not is_told:
                tell(f"the demo waits: {error.message}")
            is_told = True
        except NotFound:
            if await _has_epoch(store, epoch):
                return tell("the demo was removed.")
            tell("the store was emptied; the demo is registered again.")
        await asyncio.sleep(again_s)


async def _has_epoch(store: Store, epoch: str) -> bool:
    try:
        return await store.epoch() == epoch
    except CapacityError:
        return False


async def _serve_local(settings: Settings, *, demo: bool) -> None:
    from streamer.runtime import serve_local

    await serve_local(settings, stop=_stop_on_signals(), on_ready=_on_ready(settings, demo=demo))
    tell("stopped.")


def _stop_on_signals() -> asyncio.Event:
    """Set at the first SIGINT or SIGTERM; the second one ends the process on the spot."""
    stop = asyncio.Event()

    def on_signal(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)
        tell("draining; once more to stop at once.")
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal, number)
    return stop


def print_urls(url: str, *, demo: bool, has_tokens: bool = False) -> None:
    """What a newcomer can do now, on stderr."""
    tell(f"ready at {url}   API: {url}/docs   health: {url}/readyz")
    if demo:
        tell(f"demo feed: ws{url.removeprefix('http')}/v1/streams/{DEMO_STREAM}/feed?after=0")
    else:
        place = place_options(url, has_tokens=has_tokens)
        tell(f"add a camera: streamer streams add rtsp://... --id door{place}")


async def _show_first(store: Store, *, url: str, has_tokens: bool) -> None:
    after_seq = shown = 0
    while shown < _DEMO_LINES:
        await store.wait(DEMO_STREAM, after_seq=after_seq, timeout_s=_WAIT_S)
        found = await store.read(DEMO_STREAM, after_seq=after_seq)
        for entry in found.entries:
            after_seq = entry.seq
            shown += print_demo_event(json.loads(entry.body) | {"seq": entry.seq})
    command = watch_command(DEMO_STREAM, server=url, has_tokens=has_tokens)
    tell(f"and so on; `{command}` shows more. Ctrl-C stops the service.")


def print_demo_event(event: dict[str, object]) -> bool:
    """One line on stdout; says whether it was an anticipation."""
    from streamer.cli.lines import event_line

    print(wrapped(event_line(event), stream=sys.stdout), flush=True)
    return event["type"] == "anticipation"
