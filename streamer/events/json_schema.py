"""The wire schema as JSON Schema, for people and generators in other languages.

Write the snapshot anew after a change of `schema.py`::

    python -m streamer.events.json_schema > docs/schema/streamer.v1.json

Server messages are open (``additionalProperties`` is not said): a client must take fields that it
does not know. Client messages are closed, as the server refuses what it does not know.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pydantic import TypeAdapter

from streamer.events.schema import client_message, server_message

__all__ = ["schema_text", "wire_schema"]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_REF = "#/$defs/{model}"


def wire_schema() -> dict[str, Any]:
    """JSON Schema 2020-12 whose root is any server message; ``$defs`` has all, both directions."""
    server = _definitions(server_message, "ServerMessage")
    for definition in server.values():
        definition.pop("additionalProperties", None)
    definitions = _definitions(client_message, "ClientMessage") | server
    return {
        "$schema": _DRAFT,
        "title": "streamer.v1",
        "description": "Messages of the streamer.v1 feed: ServerMessage to, ClientMessage from "
        "the subscriber. Ignore unknown types and fields.",
        "$ref": _REF.format(model="ServerMessage"),
        "$defs": dict(sorted(definitions.items())),
    }


def schema_text() -> str:
    """`wire_schema` as the snapshot has it."""
    return json.dumps(wire_schema(), indent=2, ensure_ascii=False) + "\n"


def _definitions(adapter: TypeAdapter[Any], name: str) -> dict[str, Any]:
    schema = adapter.json_schema(ref_template=_REF)
    definitions: dict[str, Any] = schema.pop("$defs")
    for definition in definitions.values():
        _require_type(definition)
    return definitions | {name: schema}


def _require_type(definition: dict[str, Any]) -> None:
    """A message's type has a default for makers; on the wire it is always there."""
    kind = definition.get("properties", {}).get("type", {})
    if "const" in kind:
        kind.pop("default", None)
        definition["required"] = sorted({"type", *definition.get("required", [])})


if __name__ == "__main__":
    sys.stdout.write(schema_text())
