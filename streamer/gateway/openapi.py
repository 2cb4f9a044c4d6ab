"""The OpenAPI document says what FastAPI cannot know: every refusal is a problem document, some
operations need a token with a scope, and most need the store.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fastapi import FastAPI
from starlette.routing import BaseRoute

from streamer.gateway.guard import GuardedRoute, need_of

__all__ = ["describe_access", "describe_problems"]

_JSON, _PROBLEM = "application/json", "application/problem+json"
_REPLACED = ("HTTPValidationError", "Problem")
_NO_STORE = frozenset({"files", "health"})
"""Tags of operations that work without a store."""
_UNUSED = ("HTTPValidationError", "ValidationError")


_BEARER = {
    "type": "http",
    "scheme": "bearer",
    "description": "A token of `streamer token new`. Servers without a tokens file ask for none.",
}
_PROBLEM_CONTENT = {_PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}


def describe_problems(app: FastAPI) -> None:
    """Make `app.openapi` show problem documents with their media type."""

    def correct(document: dict[str, Any]) -> None:
        for answer in _answers(document):
            _correct(answer)
        for name in _UNUSED:
            document["components"]["schemas"].pop(name, None)

    _amend(app, correct)


def describe_access(app: FastAPI, routes: Sequence[BaseRoute]) -> None:
    """Make `app.openapi` show the scope of each operation of `routes`."""

    def add(document: dict[str, Any]) -> None:
        document["components"]["securitySchemes"] = {"bearer": _BEARER}
        for route in routes:
            if not isinstance(route, GuardedRoute) or not route.include_in_schema:
                continue
            scope = need_of(route.endpoint).scope
            for method in (route.methods or ()) if scope is not None else ():
                # FastAPI writes `{model:path}` as `{model}`.
                operation = document["paths"][route.path_format][method.lower()]
                operation["security"] = [{"bearer": [scope]}]
                _refuse(operation["responses"], "401", "no token, or one that nobody issued")
                _refuse(operation["responses"], "403", f"the token lacks the scope {scope}")
                if _asks_the_store(route):
                    _refuse(operation["responses"], "503", "the store is out of reach")

    _amend(app, add)


def _asks_the_store(route: GuardedRoute) -> bool:
    knows = any(each.name == "backend" for each in _parameters(route))
    return knows and not _NO_STORE.intersection(route.tags)


def _parameters(route: GuardedRoute) -> Iterable[inspect.Parameter]:
    return inspect.signature(route.endpoint).parameters.values()


def _amend(app: FastAPI, change: Callable[[dict[str, Any]], None]) -> None:
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        is_new = app.openapi_schema is None
        document = generate()
        if is_new:
            change(document)
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI documents it so


def _refuse(answers: dict[str, Any], status: str, why: str) -> None:
    answer = answers.setdefault(status, {"description": why, "content": _PROBLEM_CONTENT})
    if why not in answer["description"]:
        answer["description"] += f", or {why}"


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
        answer["content"] = _PROBLEM_CONTENT
