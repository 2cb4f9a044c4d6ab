"""A scope next to every route, checked before anything of the request is read.

::

    router = APIRouter(route_class=GuardedRoute)

    @router.delete("/{stream}")
    @needs("write")
    async def delete_stream(...): ...

A route that says neither `needs` nor `open_to_all` cannot be built.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from streamer.gateway.auth import Gate, Grant
from streamer.gateway.tokens import Scope

__all__ = ["FromGate", "FromGrant", "GuardedRoute", "Need", "need_of", "needs", "open_to_all"]

log = logging.getLogger(__name__)

_Endpoint = TypeVar("_Endpoint", bound=Callable[..., Any])
_MARK = "streamer_need"
_NOT_JSON = "Send the body with Content-Type: application/json."


@dataclass(frozen=True, slots=True)
class Need:
    """What an endpoint asks for."""

    scope: Scope | None
    """None: nothing."""
    or_ticket: bool = False
    """A feed ticket in the query will do too."""

    def admit(self, connection: HTTPConnection) -> Grant:
        """Raises `NotAuthenticated` or `ScopeMissing`."""
        gate: Gate = connection.app.state.gate
        if self.scope is None:
            return Grant(scopes=())
        if self.or_ticket:
            ticket = connection.query_params.get("ticket")
            return gate.admit_feed(connection.headers, ticket=ticket)
        return gate.admit(connection.headers, self.scope)


def needs(scope: Scope, *, or_ticket: bool = False) -> Callable[[_Endpoint], _Endpoint]:
    """Decorator of an endpoint, below the one that makes it a route."""
    return lambda endpoint: _marked(endpoint, Need(scope, or_ticket))


def open_to_all(endpoint: _Endpoint) -> _Endpoint:
    """Decorator of an endpoint that asks for no token."""
    return _marked(endpoint, Need(None))


def need_of(endpoint: Callable[..., Any]) -> Need:
    """What stands next to this endpoint."""
    need = getattr(endpoint, _MARK, None)
    assert isinstance(need, Need), f"{endpoint.__qualname__}: say needs(...) or open_to_all"
    return need


def _marked(endpoint: _Endpoint, need: Need) -> _Endpoint:
    setattr(endpoint, _MARK, need)
    return endpoint


class GuardedRoute(APIRoute):
    """The `route_class` of our routers."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        inside, need = super().get_route_handler(), need_of(self.endpoint)

        async def guarded(request: Request) -> Response:
            request.state.grant = grant = need.admit(request)
            if grant.name and need.scope != "read":
                facts = {"token": grant.name, "method": request.method, "path": request.url.path}
                log.info("admitted", extra=facts | {"request_id": request.state.request_id})
            if self.body_field is not None:
                _check_is_json(request)
            return await inside(request)

        return guarded


def _check_is_json(request: Request) -> None:
    """Else a page of another site could send a body without being asked for permission first."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_json = kind == "application/json" or (
        kind.startswith("application/") and kind.endswith("+json")
    )
    length = request.headers.get("content-length")
    has_body = length not in (None, "0") or "transfer-encoding" in request.headers
    if has_body and not is_json:
        raise HTTPException(415, _NOT_JSON)


async def _gate(connection: HTTPConnection) -> Gate:
    gate: Gate = connection.app.state.gate
    return gate


async def _grant(request: Request) -> Grant:
    grant: Grant = request.state.grant
    return grant


FromGate = Annotated[Gate, Depends(_gate)]
FromGrant = Annotated[Grant, Depends(_grant)]
