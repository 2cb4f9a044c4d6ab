"""The real app over an embedded store, in memory or behind a real server on 127.0.0.1."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket

import httpx2
import pytest
import uvicorn

from streamer.events.config import FeedConfig
from streamer.events.schema import StreamStateBody, retained_body
from streamer.gateway.app import build_app
from streamer.gateway.backend import Backend, Build
from streamer.gateway.config import GatewayConfig
from streamer.gateway.websocket_protocol import FeedProtocol
from streamer.records import ModelInfo, StreamSpec
from streamer.sources.policy import SourcePolicy
from streamer.store.memory import MemoryStore
from streamer.store.protocol import Presence

TIME = "2026-12-01T09:00:03.000000Z"
INFO = ModelInfo(
    name="tiny",
    fingerprint="0123456789ab",
    trained=False,
    crop=64,
    tubelet=2,
    patch=16,
    trained_frames=64,
    dtype="float32",
    config={"hidden_size": 192},
)
KINDS = ("ingest", "encoder", "rollout", "supervisor")


class _Server(uvicorn.Server):
    """Leaves when it is told, not at uvicorn's next look; at once when nobody is connected."""

    def __init__(self, config):
        super().__init__(config)
        self.is_up, self.leaves = asyncio.Event(), asyncio.Event()

    async def startup(self, sockets=None):
        await super().startup(sockets)
        self.is_up.set()

    async def main_loop(self):
        await self.on_tick(0)
        await self.leaves.wait()

    async def shutdown(self, sockets=None):
        if not await self._is_left_alone():
            await super().shutdown(sockets)
        for server in self.servers:
            server.close()
            await server.wait_closed()

    async def _is_left_alone(self):
        """Whether all clients are gone; one that just left is noticed in the next rounds."""
        state = self.server_state
        for _ in range(20):
            if not (state.connections or state.tasks):
                return True
            await asyncio.sleep(0.001)
        return False


class Gateway:
    """A backend, and what tests do with it."""

    info = INFO
    kinds = KINDS

    def __init__(self, *, feed=None, config=None, store=None, defaults=None, uploads=None):
        self.store = store or MemoryStore(epoch="e1")
        self.backend = Backend(
            store=self.store,
            policy=SourcePolicy(allowed_cidrs=("192.0.2.0/24",)),
            build=Build(version="1.2.3", commit="abc"),
            feed=feed or FeedConfig(),
            config=config or GatewayConfig(),
            defaults=defaults or StreamSpec(source=""),
            uploads=uploads,
        )
        self.app = build_app(self.backend)
        self.leases = {}

    async def announce(self, *kinds, model=INFO):
        for kind in kinds or KINDS:
            served = model if kind in ("encoder", "rollout") else None
            await self.store.announce(
                Presence(kind=kind, replica=f"{kind}-0", model=served), ttl_s=600
            )

    async def stream(self, stream="cam", *, source="synthetic:x"):
        await self.store.create_stream(stream, StreamSpec(source=source))
        lease = await self.store.acquire_lease(stream, owner="here", ttl_s=600)
        self.leases[stream] = lease
        return lease

    async def append(self, count=1, *, stream="cam", kind="stream.state", reason=""):
        body = StreamStateBody(stream=stream, time=TIME, state="live", reason=reason)
        fields = json.loads(retained_body(body)) | {"type": kind}
        data = json.dumps(fields).encode()
        for _ in range(count):
            await self.store.append(stream, lease=self.leases[stream].token, body=data)

    async def append_state(self, state, *, stream="cam"):
        """As the session that holds the stream's lease."""
        data = retained_body(StreamStateBody(stream=stream, time=TIME, state=state))
        await self.store.append(stream, lease=self.leases[stream].token, body=data)

    async def report(self, status, *, stream="cam"):
        """As the session that holds the stream's lease."""
        token = self.leases[stream].token
        await self.store.put_status(stream, status, lease=token, ttl_s=600)

    def http(self):
        transport = httpx2.ASGITransport(app=self.app)
        return httpx2.AsyncClient(transport=transport, base_url="http://gateway")

    @contextlib.asynccontextmanager
    async def served(self):
        """A real server; yields host:port."""
        config = uvicorn.Config(
            self.app,
            ws=FeedProtocol,
            log_level="critical",
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        server = _Server(config)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            async with asyncio.TaskGroup() as group:
                group.create_task(server.serve(sockets=[listener]))
                try:
                    await server.is_up.wait()
                    yield f"127.0.0.1:{listener.getsockname()[1]}"
                finally:
                    server.leaves.set()


@pytest.fixture
def make_gateway():
    return Gateway


@pytest.fixture
def gateway():
    return Gateway()


@pytest.fixture
async def http(gateway):
    async with gateway.http() as client:
        yield client


@pytest.fixture
async def ready_http(gateway, http):
    await gateway.announce()
    return http
