"""Which names a route takes in its query and body, to suggest one for an unknown name."""

from __future__ import annotations

from typing import TypeGuard

from pydantic import BaseModel
from starlette.requests import Request

__all__ = ["known_fields"]


def known_fields(request: Request) -> dict[str, tuple[str, ...]]:
    """Section of a request (empty: its top) -> names known there, by the route that took it."""
    dependant = getattr(request.scope.get("route"), "dependant", None)
    if dependant is None:
        return {}
    sections: dict[str, tuple[str, ...]] = {"": ()}
    for part in (*dependant.query_params, *dependant.body_params):
        _add(part.field_info.annotation, sections)
    return sections


def _add(model: object, sections: dict[str, tuple[str, ...]]) -> None:
    if not _is_model(model):
        return
    sections[""] += tuple(model.model_fields)
    for name, field in model.model_fields.items():
        if _is_model(field.annotation):
            sections[name] = tuple(field.annotation.model_fields)


def _is_model(annotation: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
