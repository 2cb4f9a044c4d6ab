"""`streamer serve` on Ray: start or join, deploy both applications, wait, drain, leave.

Imports ray only inside, after the environment is prepared.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import threading
import urllib.error
import urllib.request
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from deployments.address import find_cluster
from deployments.environment import prepare
from deployments.preflight import preflight
from streamer.clock import monotonic_ns
from streamer.errors import CapacityError
from streamer.settings import Settings
from streamer.telemetry import tell

if TYPE_CHECKING:
    from streamer.runtime import Ready

__all__ = ["Interrupted", "Stop", "serve_ray", "stopping_on_signals"]

_POLL_S = 0.2


class Interrupted(BaseException):
    """The user asked to stop while the service was starting."""


def serve_ray(settings: Settings, *, on_ready: Ready) -> None:
    """Run the service until SIGINT or SIGTERM; call it in the main thread.

    The first signal drains: sockets are closed with 1012, sessions give their leases back. A second
    one ends the process at once, and Ray's reaper ends Ray's processes.

    Args:
        on_ready: as for `streamer.runtime.serve_local`.

    Raises:
        ConfigError, NotFound: as `preflight`; Ray cannot be started or joined, or a replica cannot
            be made.
        CapacityError: the service did not become ready in `settings.ray.ready_s`.
    """
    address = settings.ray.address or os.environ.get("RAY_ADDRESS", "")
    port = preflight(settings)
    cluster = find_cluster(address) if address not in ("", "local") else None
    prepare(on_loopback=cluster is None or cluster.is_on_loopback)

    from deployments.cluster import joined_ray, own_ray
    from deployments.rollcall import check_room

    with stopping_on_signals() as stop:
        tell(f"joining Ray at {cluster.address} ..." if cluster else "starting Ray ...")
        with joined_ray(cluster.address) if cluster else own_ray(settings.ray) as logs:
            stop.install()  # Ray has just put its own handler for SIGTERM in place
            tell(f"loading model {settings.model.name} ...   logs: {logs}")
            if not cluster:
                check_room(settings.ray)
            with contextlib.suppress(Interrupted):
                _serve(settings, port=port, stop=stop, on_ready=on_ready)
    tell("stopped.")


def _serve(settings: Settings, *, port: int, stop: Stop, on_ready: Ready) -> None:
    from deployments.cluster import serving
    from deployments.deploy import deploy, drain

    with serving(host=settings.server.host, port=port):
        url = f"http://{_shown(settings.server.host)}:{port}"
        with stop.raising():
            deploy(settings)
            _wait_ready(url, timeout_s=settings.ray.ready_s)
        asyncio.run(_beside(settings, url=url, stop=stop, on_ready=on_ready))
        tell("draining; once more to stop at once.")
        drain(settings)


async def _beside(settings: Settings, *, url: str, stop: Stop, on_ready: Ready) -> None:
    from deployments.store import opened_here

    async with opened_here(settings.store) as store:
        await _until(stop, on_ready(store, url))


async def _until(stop: Stop, beside: Awaitable[None]) -> None:
    """Wait for `stop`; what runs beside is cancelled then, and its error ends the wait."""
    running = asyncio.ensure_future(beside)
    try:
        while not stop.requested.is_set():
            if running.done():
                running.result()
            # Signal handlers run between two turns of the loop and cannot wake it.
            await asyncio.sleep(_POLL_S)
    finally:
        running.cancel()
        await asyncio.wait({running})


class Stop:
    """What a signal does: the first sets `requested`, the second ends the process."""

    def __init__(self) -> None:
        self.requested = threading.Event()
        self._raises = False

    def install(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Inside, the first signal also raises `Interrupted`, at once if it came before.

        Not while Ray itself starts or stops: half of a Ray is nothing that one could stop.
        """
        if self.requested.is_set():
            raise Interrupted
        self._raises = True
        try:
            yield
        finally:
            self._raises = False

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.requested.is_set():
            os._exit(128 + number)
        self.requested.set()
        if self._raises:
            raise Interrupted


@contextmanager
def stopping_on_signals() -> Iterator[Stop]:
    """SIGINT and SIGTERM go to the `Stop` inside the block, and where they went before after it."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    stop = Stop()
    stop.install()
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait_ready(url: str, *, timeout_s: float) -> None:
    end_ns = monotonic_ns() + int(timeout_s * 1e9)
    pause = threading.Event()
    # Past any proxy of the environment: it would look for us on its own machine.
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    reason = "no answer"
    while monotonic_ns() < end_ns:
        try:
            with direct.open(f"{url}/readyz", timeout=5):
                return
        except urllib.error.HTTPError as error:
            reason = _reasons(error.read())
        except OSError as error:
            reason = str(error)
        pause.wait(_POLL_S)
    raise CapacityError(
        f"The service was not ready after {timeout_s:g} s: {reason}. Give it more time with"
        " ray.ready_s, or look into the logs of the replicas."
    )


def _reasons(body: bytes) -> str:
    try:
        checks = json.loads(body)["checks"]
        return "; ".join(f"{c['name']}: {c['reason']}" for c in checks if not c["ok"])
    except (ValueError, KeyError, TypeError):
        return body[:200].decode(errors="replace") or "no answer"


def _shown(host: str) -> str:
    """A host one can put into a URL."""
    if host in ("0.0.0.0", "::"):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
