"""Requests are answered in the event loop: nothing of a route is handed to a pool of threads."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, APIWebSocketRoute

from streamer.gateway.app import PARTS

pytestmark = pytest.mark.unit


def calls(dependant: Dependant) -> Iterator[object]:
    yield dependant.call
    for below in dependant.dependencies:
        yield from calls(below)


def test_no_route_and_no_dependency_is_a_plain_function() -> None:
    """FastAPI runs those in up to forty threads, one after the other for each request."""
    found = [route for part in PARTS for route in part.router.routes]
    routes = [r for r in found if isinstance(r, APIRoute | APIWebSocketRoute)]
    assert len(routes) > 10
    plain = {call for route in routes for call in calls(route.dependant) if is_plain(call)}
    assert plain == set()


def is_plain(call: object) -> bool:
    return not (inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call))
