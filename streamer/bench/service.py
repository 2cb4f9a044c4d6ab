"""A service of its own for a measurement: `streamer serve` in a process, ended with the block."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

from streamer.errors import CapacityError

__all__ = ["Service", "started_service"]

_START_S = 180.0
_STOP_S = 40.0
_READY = re.compile(r"ready at (http://\S+)")
_SETTINGS = {
    # Small, so that a slow reader is told within minutes and not after hours.
    "STREAMER_FEED__OUTBOX": "16",
    "STREAMER_LOG__LEVEL": "warning",
}
_PROGRAM = "from streamer.cli.main import main; main()"


@dataclass(slots=True)
class Service:
    """A service that runs."""

    process: Process
    url: str = ""
    words: deque[str] = field(default_factory=lambda: deque(maxlen=20))
    """The newest lines it said."""

    @property
    def pid(self) -> int:
        return self.process.pid

    def why_ended(self) -> str:
        """What it said last, when it ended by itself; empty while it runs."""
        if self.process.returncode is None:
            return ""
        said = self.words[-1] if self.words else "it said nothing"
        return f"exit code {self.process.returncode}, {said}"


@asynccontextmanager
async def started_service(
    *, runtime: Literal["local", "ray"], model: str, folder: str = ""
) -> AsyncIterator[Service]:
    """`streamer serve` on a free port, ready; with its default settings, whatever ours are.

    Args:
        folder: below which it may read files; empty: none.

    Raises:
        CapacityError: it did not become ready.
    """
    kept = {name: v for name, v in os.environ.items() if not name.startswith("STREAMER_")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _PROGRAM, "serve"),
        *("--runtime", runtime, "--model", model, "--port", "0"),
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=PIPE,
        env=kept | _SETTINGS | ({"STREAMER_SOURCES__ALLOW_FILES": folder} if folder else {}),
        start_new_session=True,  # Ctrl-C is for us; it is ended in order afterwards
    )
    service = Service(process)
    ready = asyncio.Event()
    listening = asyncio.ensure_future(_listen(service, ready))
    try:
        await _wait_ready(service, ready)
        yield service
    finally:
        await _end(process)
        await listening


async def _listen(service: Service, ready: asyncio.Event) -> None:
    assert service.process.stderr is not None
    with contextlib.suppress(ValueError):  # a line without end: nothing of ours says such
        async for line in service.process.stderr:
            text = line.decode(errors="replace").rstrip()
            service.words.append(text)
            if found := _READY.search(text):
                service.url = found[1]
                ready.set()
    ready.set()


async def _wait_ready(service: Service, ready: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(_START_S):
            await ready.wait()
    except TimeoutError:
        pass
    if not service.url:
        said = "\n".join(service.words) or "It said nothing."
        raise CapacityError(f"The service for the measurement did not become ready. {said}")


async def _end(process: Process) -> None:
    if process.returncode is not None:
        return
    process.send_signal(signal.SIGINT)
    try:
        async with asyncio.timeout(_STOP_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
