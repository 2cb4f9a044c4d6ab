"""`streamer serve` on Ray: start or join, deploy both applications, wait, drain, leave.

Imports ray only inside, after the environment is prepared.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from deployments.environment import prepare
from streamer.clock import monotonic_ns
from streamer.errors import CapacityError, ConfigError
from streamer.settings import Settings

__all__ = ["DEMO_SOURCE", "DEMO_STREAM", "Interrupted", "Stop", "serve_ray", "stopping_on_signals"]

DEMO_STREAM = "demo"
DEMO_SOURCE = "synthetic:bounce?seed=1"

_POLL_S = 0.2

Say = Callable[[str], None]


class Interrupted(BaseException):
    """The user asked to stop while the service was starting."""


def serve_ray(settings: Settings, *, demo: bool, say: Say | None = None) -> None:
    """Run the service until SIGINT or SIGTERM; call it in the main thread.

    The first signal drains: sockets are closed with 1012, sessions give their leases back. A second
    one ends the process at once, and Ray's reaper ends Ray's processes.

    Args:
        demo: also register the synthetic stream `demo`.
        say: takes lines for people; None writes them to standard error.

    Raises:
        ConfigError: the port is taken, Ray cannot be started or joined, or the models cannot be
            loaded.
        CapacityError: the service did not become ready in `settings.ray.ready_s`.
    """
    say = say or _say
    address = settings.ray.address or os.environ.get("RAY_ADDRESS", "")
    prepare(own_cluster=not address)
    host, port = settings.server.host, _usable_port(settings.server.host, settings.server.port)

    from deployments.cluster import joined_ray, own_ray

    with stopping_on_signals() as stop:
        try:
            say(f"joining Ray at {address} ..." if address else "starting Ray ...")
            with joined_ray(address) if address else own_ray(settings.ray) as logs:
                # Ray has just put its own handler for SIGTERM in place.
                stop.install()
                say(f"logs of the replicas: {logs}")
                _serve(settings, demo=demo, host=host, port=port, stop=stop, say=say)
        except Interrupted:
            say("stopped while starting")


def _serve(settings: Settings, *, demo: bool, host: str, port: int, stop: Stop, say: Say) -> None:
    from deployments.cluster import serving
    from deployments.deploy import add_demo, deploy, drain

    with serving(host=host, port=port):
        say(f"loading model {settings.model.name} ...")
        deploy(settings)
        url = f"http://{_shown(host)}:{port}"
        _wait_ready(url, timeout_s=settings.ray.ready_s)
        if demo:
            add_demo(settings, stream=DEMO_STREAM, source=DEMO_SOURCE)
        for line in _welcome(url, demo=demo):
            say(line)
        stop.may_raise = False
        stop.requested.wait()
        say("stopping; once more stops at once")
        drain(settings)


class Stop:
    """What a signal does: raises while starting, asks while running, ends while stopping."""

    def __init__(self) -> None:
        self.requested = threading.Event()
        self.may_raise = True

    def install(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.requested.is_set():
            os._exit(128 + number)
        self.requested.set()
        if self.may_raise:
            self.may_raise = False
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


def _usable_port(host: str, port: int) -> int:
    """The port itself, or a free one for 0. Asked before Ray starts, which takes seconds."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            return int(probe.getsockname()[1])
    except OSError as error:
        raise ConfigError(
            f"Port {port} of {host} cannot be used: {error.strerror or error}. Choose another"
            " with --port, or end what listens there."
        ) from error


def _wait_ready(url: str, *, timeout_s: float) -> None:
    end_ns = monotonic_ns() + int(timeout_s * 1e9)
    pause = threading.Event()
    reason = "no answer"
    while monotonic_ns() < end_ns:
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=5):
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


def _welcome(url: str, *, demo: bool) -> Iterator[str]:
    stream = DEMO_STREAM if demo else "STREAM"
    yield f"ready   {url}"
    yield f"api     {url}/docs"
    yield f"feed    {url.replace('http', 'ws', 1)}/v1/streams/{stream}/feed"
    yield f"watch   streamer watch {stream} --server {url}"
    yield "stop    Ctrl-C"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201  # what the CLI shows
