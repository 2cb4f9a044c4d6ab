"""The gateway on a port of its own: uvicorn inside a process that does other things, too."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import uvicorn

from streamer.errors import ConfigError
from streamer.gateway.app import build_app
from streamer.gateway.backend import Backend
from streamer.gateway.hub import Hub
from streamer.gateway.websocket_protocol import FeedProtocol

__all__ = ["base_url", "bound_socket", "opened_gateway"]

_UNREAD_S = 60.0
_OVERSIZED = 8
"""Times the longest message that a session takes: up to here it is the one to refuse."""


class _Server(uvicorn.Server):
    """Leaves signals to whoever started the service, and says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listens = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listens.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def opened_gateway(
    backend: Backend, *, listening: socket.socket, drain_s: float
) -> AsyncIterator[None]:
    """Serve for as long as the context lasts; entered once it listens.

    Args:
        backend: when the context is left, its `draining` should be set: feeds then have `drain_s`
            seconds to say goodbye.
        listening: of `bound_socket`; closed at the end.
    """
    app = build_app(backend)
    server = _Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            ws=FeedProtocol,
            ws_max_size=_OVERSIZED * backend.feed.max_message_bytes,
            timeout_graceful_shutdown=max(1, round(drain_s)),
        )
    )
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    listens = asyncio.ensure_future(server.listens.wait())
    try:
        await asyncio.wait({serving, listens}, return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()
        yield
        await _feeds_closed(app.state.hub, patience_s=drain_s)
    finally:
        listens.cancel()
        server.should_exit = True
        await serving


async def _feeds_closed(hub: Hub, *, patience_s: float) -> None:
    """Feeds say goodbye with a resume point before the server cuts them."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(patience_s):
            while hub.subscribers:  # noqa: ASYNC110 - uvicorn itself polls at this rate
                await asyncio.sleep(0.05)


def bound_socket(host: str, port: int) -> socket.socket:
    """A listening address, taken before anything slow begins.

    Raises:
        ConfigError: the port is taken, or the address is not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit it. Without it one whose client stopped reading stays for ever after the
    # feed gave it up: the server waits until the last bytes are taken.
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(_UNREAD_S * 1000))
    try:
        bound.bind((host, port))
        bound.listen()  # only this takes the port from others who reuse addresses, too
    except OSError as error:
        bound.close()
        raise ConfigError(_why_not_bound(error, host=host, port=port)) from error
    return bound


def _why_not_bound(error: OSError, *, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {port} of {host} is taken by another program. Stop that one, or choose another"
            " port with --port (0 takes a free one)."
        )
    if error.errno == errno.EACCES:
        return f"Port {port} needs rights that this user lacks; choose one above 1023 with --port."
    return f"Cannot listen on {host} port {port}: {error.strerror or error}."


def base_url(bound: socket.socket) -> str:
    """The http URL of an address that was taken; of all addresses, that of this machine."""
    host, port = bound.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
