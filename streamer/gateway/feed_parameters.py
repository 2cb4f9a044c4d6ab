"""The query of a feed as OpenAPI parameters: the route reads it as `feed_query` says."""

from __future__ import annotations

from typing import Any

from streamer.events.schema import FeedOptions

__all__ = ["feed_parameters"]

_OTHERS = {
    "after": {
        "type": "string",
        "maxLength": 64,
        "examples": ["7f3a:418", "418", "0"],
        "description": "a cursor: an event's id, or a seq of this epoch; from now on without it, 0"
        " for everything that is retained",
    },
    "strict": {
        "type": "boolean",
        "default": False,
        "description": "410 rather than a `gap` when the events after the cursor are gone",
    },
    "ticket": {"type": "string", "description": "of POST /v1/tickets, in place of a bearer token"},
}


def feed_parameters() -> list[dict[str, Any]]:
    """Of the feed of one stream. Lists stand in one value, with commas."""
    options = FeedOptions.model_json_schema()["properties"]
    return [_parameter(name, schema) for name, schema in (_OTHERS | options).items()]


def _parameter(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    given = {key: value for key, value in schema.items() if key not in ("default", "title")}
    described = given.pop("description", "")
    plain = [each for each in given.pop("anyOf", []) if each.get("type") != "null"]
    parameter = {
        "name": name,
        "in": "query",
        "required": False,
        "description": described,
        "schema": given | (plain[0] if plain else {}),
    }
    if parameter["schema"].get("type") == "array":
        parameter |= {"style": "form", "explode": False}
    return parameter
