"""The ASGI app: REST, feed, health. Knows a `Backend`; no camera, no tensor, no cluster."""

from __future__ import annotations

from fastapi import FastAPI

from streamer.gateway import (
    anticipations,
    asyncapi,
    feed,
    health,
    history,
    latents,
    metrics,
    models,
    pictures,
    sse,
    streams,
    tickets,
)
from streamer.gateway.auth import Gate
from streamer.gateway.backend import Backend
from streamer.gateway.envelope import Envelope
from streamer.gateway.hub import Hub
from streamer.gateway.openapi import describe_access, describe_problems
from streamer.gateway.problems import install_problems
from streamer.gateway.upload_config import UploadConfig

__all__ = ["PARTS", "build_app"]

PARTS = (
    streams,
    history,
    feed,
    sse,
    anticipations,
    latents,
    pictures,
    models,
    tickets,
    health,
    asyncapi,
    metrics,
)
"""Modules with a `router`."""
_FORM_BYTES = 4 * 1024 * 1024
_DESCRIPTION = """Live cameras in, anticipations out: what happens now, what happens next, how
surprising the present is.

* Register a source with `POST /v1/streams`.
* Follow `/v1/streams/{stream}/feed`, a WebSocket with subprotocol `streamer.v1`: one JSON event per
  clip. Every event's `id` is a cursor: reconnect with `?after=<id>` and nothing is lost.
* With tokens configured, send `Authorization: Bearer <token>`; browsers open feeds with a ticket.
* Errors are `application/problem+json` with a stable `code`.
"""
_TAGS = [
    {"name": "streams", "description": "Sources that are watched."},
    {"name": "feed", "description": "What happens, as it happens; `/asyncapi.json` has messages."},
    {"name": "pictures", "description": "What the model sees, and its latents as colours."},
    {"name": "history", "description": "What the feed said, as far back as it is retained."},
    {"name": "files", "description": "A caller's own files, worked on at once and not kept."},
    {"name": "models", "description": "What is loaded."},
    {"name": "access", "description": "Tokens stay out of URLs."},
    {"name": "health", "description": "For probes and people."},
]


def build_app(backend: Backend) -> FastAPI:
    """A new app. Build it in the process that runs it: an app that has run cannot be pickled.

    Raises:
        ConfigError: the tokens file cannot be used.
    """
    app = FastAPI(
        title="streamer",
        summary="Watches live cameras and says what is about to happen.",
        description=_DESCRIPTION,
        version=backend.build.version,
        openapi_tags=_TAGS,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        redirect_slashes=False,
        redoc_url=None,
    )
    app.state.backend = backend
    app.state.hub = Hub(backend)
    app.state.gate = Gate(backend.config)
    for part in PARTS:
        app.include_router(part.router)
    install_problems(app)
    describe_problems(app)
    describe_access(app, [route for part in PARTS for route in part.router.routes])
    app.add_middleware(Envelope, config=backend.config, limits=_body_limits(backend))
    return app


def _body_limits(backend: Backend) -> dict[str, int]:
    """Paths that take larger bodies than the others. The form around a file may have something,
    too; the file itself is counted where it is read."""
    # Without the models the same, so that what is said is that they are missing.
    config = UploadConfig() if backend.uploads is None else backend.uploads.config
    return dict.fromkeys(("/v1/anticipations", "/v1/latents"), config.max_bytes + _FORM_BYTES)
