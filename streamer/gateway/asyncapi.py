"""The feeds as an AsyncAPI 3 document, made from the message models.

`python -m streamer.gateway.asyncapi > docs/schema/asyncapi.json` writes the published copy.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from streamer import __version__
from streamer.events.json_schema import wire_schema
from streamer.gateway.backend import FromBackend
from streamer.gateway.guard import GuardedRoute, open_to_all

__all__ = ["document", "document_text", "router"]

router = APIRouter(tags=["feed"], route_class=GuardedRoute)

_UNIONS = {"send": "ServerMessage", "receive": "ClientMessage"}
"""What the server does with the members of a union."""
_DESCRIPTION = """WebSockets with the subprotocol `streamer.v1`; a message is one JSON object in a
text frame. Every event's `id` is a cursor: connect with `after` and nothing is lost that is still
retained. Ignore unknown types and fields. The feed of one stream comes as Server-Sent Events too:
same path, `Accept: text/event-stream`."""
_CURSOR = {"type": "string", "examples": ["7f3a:418", "418"]}
_STREAM = {"type": "string", "examples": ["kitchen"]}
_STRICT = {"type": "boolean", "description": "close with 4410 rather than tell a gap"}
_TICKET = {"type": "string", "description": "of POST /v1/tickets, in place of a bearer token"}
_QUERIES: dict[str, dict[str, Any]] = {
    "feed": {"after": _CURSOR},
    "feedOfMany": {
        "stream": {"type": "array", "items": _STREAM, "minItems": 1},
        "after": {"type": "array", "items": {"type": "string", "examples": ["kitchen:7f3a:418"]}},
    },
}


@router.get(
    "/asyncapi.json",
    summary="The feeds as an AsyncAPI document",
    response_class=JSONResponse,
    responses={200: {"content": {"application/json": {"schema": {"type": "object"}}}}},
)
@open_to_all
async def asyncapi(backend: FromBackend) -> JSONResponse:
    """The messages of both directions, as the server makes and takes them."""
    return JSONResponse(document(backend.build.version))


def document(version: str) -> dict[str, Any]:
    """The whole document.

    Args:
        version: of the service.
    """
    schemas = _with_refs_here(wire_schema()["$defs"])
    types = {action: _types(schemas.pop(union), schemas) for action, union in _UNIONS.items()}
    options = schemas["FeedOptions"]["properties"]
    messages = types["send"] | types["receive"]
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "streamer feeds",
            "version": version,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {
            "feed": _channel("feed", "/v1/streams/{stream}/feed", messages, options)
            | {"parameters": {"stream": {"description": "id of the stream"}}},
            "feedOfMany": _channel("feedOfMany", "/v1/feed", messages, options),
        },
        "operations": {
            f"{action}On{channel[0].upper()}{channel[1:]}": _operation(action, channel, types)
            for channel in _QUERIES
            for action in _UNIONS
        },
        "components": {
            "messages": {kind: _message(kind, schemas[name]) for kind, name in messages.items()},
            "schemas": schemas,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def document_text() -> str:
    """The published copy."""
    return json.dumps(document(__version__), indent=1, ensure_ascii=False) + "\n"


def _with_refs_here(definitions: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(definitions).replace('"#/$defs/', '"#/components/schemas/')
    schemas: dict[str, Any] = json.loads(text)
    return schemas


def _types(union: dict[str, Any], schemas: dict[str, Any]) -> dict[str, str]:
    """Wire type -> name of its schema."""
    names = [member["$ref"].rpartition("/")[2] for member in union["oneOf"]]
    return {schemas[name]["properties"]["type"]["const"]: name for name in names}


def _channel(
    name: str, address: str, messages: dict[str, str], options: dict[str, Any]
) -> dict[str, Any]:
    query = _QUERIES[name] | {"strict": _STRICT, "ticket": _TICKET} | options
    return {
        "address": address,
        "messages": {kind: {"$ref": f"#/components/messages/{kind}"} for kind in messages},
        "bindings": {
            "ws": {
                "method": "GET",
                "query": {"type": "object", "properties": query},
                "bindingVersion": "0.1.0",
            }
        },
    }


def _operation(action: str, channel: str, types: dict[str, dict[str, str]]) -> dict[str, Any]:
    place = f"#/channels/{channel}"
    return {
        "action": action,
        "channel": {"$ref": place},
        "messages": [{"$ref": f"{place}/messages/{kind}"} for kind in types[action]],
        "security": [{"$ref": "#/components/securitySchemes/bearer"}],
    }


def _message(kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": kind,
        "title": schema["title"],
        "summary": schema["description"].partition("\n")[0],
        "payload": {"$ref": f"#/components/schemas/{schema['title']}"},
    }


if __name__ == "__main__":
    sys.stdout.write(document_text())
