"""What the routes that take files have in common: their documents, and names of files."""

from __future__ import annotations

import re
from typing import Any

from streamer.errors import CapacityError
from streamer.gateway.backend import Backend
from streamer.gateway.problems import Problem
from streamer.gateway.upload_errors import NotOfferedHere
from streamer.gateway.uploads import Uploads

__all__ = ["UPLOAD_ANSWERS", "UPLOAD_BODY", "shown", "stem_of", "uploads_of"]

_MAX_NAME = 64

UPLOAD_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "video/*": {"schema": {"type": "string", "format": "binary"}},
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                    "description": "The options of the query may stand in the form, too.",
                }
            },
        },
    }
}
UPLOAD_ANSWERS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "a setting cannot work"},
    408: {"model": Problem, "description": "the sender is too slow"},
    413: {"model": Problem, "description": "the file is too large"},
    415: {"model": Problem, "description": "not a file that can be read here"},
    422: {"model": Problem, "description": "options that cannot be, or a video too long"},
    429: {"model": Problem, "description": "as many uploads as are worked on at once"},
    501: {"model": Problem, "description": "this gateway has no way to the models"},
    503: {"model": Problem, "description": "no model is loaded yet, or shutting down"},
    507: {"model": Problem, "description": "the disk where uploads wait is full"},
}


def uploads_of(backend: Backend) -> Uploads:
    """Raises `NotOfferedHere`, and `CapacityError` while the gateway shuts down."""
    if backend.uploads is None:
        raise NotOfferedHere(
            "This gateway serves feeds only; ask the one of the service itself for this."
        )
    if backend.draining.is_set():
        raise CapacityError("This gateway is shutting down.")
    return backend.uploads


def shown(filename: str) -> str:
    """A caller's name of a file, for sentences about it."""
    return _last_part(filename) or "The upload"


def stem_of(filename: str) -> str:
    """A caller's name of a file, without its ending, as the name of its events' stream."""
    name = _last_part(filename)
    return (name.rpartition(".")[0] or name)[:_MAX_NAME] or "upload"


def _last_part(filename: str) -> str:
    printable = re.sub(r"[\x00-\x1f\x7f]", "", filename)
    return re.split(r"[/\\]", printable)[-1][: 2 * _MAX_NAME].strip()
