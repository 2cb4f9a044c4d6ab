"""The OpenAPI document says what FastAPI cannot know: every refusal is a problem document."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

__all__ = ["describe_problems"]

_JSON, _PROBLEM = "application/json", "application/problem+json"
_REPLACED = ("HTTPValidationError", "Problem")
_UNUSED = ("HTTPValidationError", "ValidationError")


def describe_problems(app: FastAPI) -> None:
    """Make `app.openapi` show problem documents with their media type."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = generate()
            for answer in _answers(document):
                _correct(answer)
            for name in _UNUSED:
                document["components"]["schemas"].pop(name, None)
        assert app.openapi_schema is not None  # `generate` keeps it there
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _answers(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        answer
        for path in document["paths"].values()
        for operation in path.values()
        for answer in operation["responses"].values()
    ]


def _correct(answer: dict[str, Any]) -> None:
    schema = answer.get("content", {}).get(_JSON, {}).get("schema", {})
    if schema.get("$ref", "").rpartition("/")[2] in _REPLACED:
        answer["content"] = {_PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
