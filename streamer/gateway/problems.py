"""Every error leaves as `application/problem+json` (RFC 9457), whatever raised it.

``detail`` is a sentence for people, ``code`` is for programs. Input is never echoed back: a source
URL in a refused body may hold a password.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from streamer.errors import StreamerError
from streamer.events.explained import explained, nearest_name
from streamer.gateway.known_fields import known_fields

__all__ = [
    "HTTP_CODES",
    "FieldProblem",
    "Problem",
    "ProblemResponse",
    "early_problem",
    "install_problems",
    "internal_problem",
    "refused_field",
]

HTTP_CODES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "body_too_large",
    415: "unsupported_media_type",
    426: "upgrade_required",
}
"""Of refusals that are no error of ours; any other status has ``http_<status>``."""


class FieldProblem(BaseModel):
    """One field of a request that cannot be used."""

    field: str = Field(description="dotted path, like `sampling.fps`")
    code: str
    message: str


class Problem(BaseModel):
    """RFC 9457 problem details."""

    type: str = Field(examples=["urn:streamer:problem:not_found"])
    title: str = Field(description="HTTP reason phrase", examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["There is no stream named 'cam0'."])
    code: str = Field(description="stable, for programs", examples=["not_found"])
    retryable: bool = Field(description="the same request may succeed later")
    retry_after_s: float | None = None
    request_id: str = Field(description="also in the header X-Request-Id and in the server's log")
    errors: list[FieldProblem] | None = None


class ProblemResponse(JSONResponse):
    media_type = "application/problem+json"


def install_problems(app: FastAPI) -> None:
    """Give `app` the handlers for our errors, refused requests and unknown paths."""

    async def ours(request: Request, error: Exception) -> ProblemResponse:
        assert isinstance(error, StreamerError)
        challenge = getattr(error, "challenge", None)
        return _problem(
            request,
            status=error.http_status,
            code=error.code,
            detail=error.message,
            retryable=error.retryable,
            retry_after_s=getattr(error, "retry_after_s", None),
            headers=None if challenge is None else {"WWW-Authenticate": challenge},
        )

    async def invalid(request: Request, error: Exception) -> ProblemResponse:
        assert isinstance(error, RequestValidationError)
        fields = known_fields(request)
        found = [_field_problem(item, fields) for item in error.errors()]
        detail = "; ".join(f"{item.field}: {item.message}" for item in found[:3])
        return _problem(request, status=422, code="invalid_request", detail=detail, errors=found)

    async def http(request: Request, error: Exception) -> ProblemResponse:
        assert isinstance(error, HTTPException)
        return _problem(
            request,
            status=error.status_code,
            code=HTTP_CODES.get(error.status_code, f"http_{error.status_code}"),
            detail=_http_detail(request, error),
            headers=error.headers,
        )

    app.add_exception_handler(StreamerError, ours)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)


def early_problem(request: HTTPConnection, *, status: int, detail: str) -> ProblemResponse:
    """The answer to a request or socket that does not even reach a route."""
    return _problem(request, status=status, code=HTTP_CODES[status], detail=detail)


def refused_field(field: str, message: str, *, kind: str = "value_error") -> RequestValidationError:
    """What to raise for a part of a request that FastAPI does not read itself; becomes 422."""
    return RequestValidationError([{"type": kind, "loc": ("body", field), "msg": message}])


def internal_problem(request: Request) -> ProblemResponse:
    """The answer to an error that is a bug of ours: says nothing but where to look."""
    return _problem(
        request,
        status=500,
        code="internal",
        detail="The server failed on this request; its log has the reason under the request id.",
    )


def _problem(
    request: HTTPConnection,
    *,
    status: int,
    code: str,
    detail: str,
    retryable: bool = False,
    retry_after_s: float | None = None,
    errors: list[FieldProblem] | None = None,
    headers: Mapping[str, str] | None = None,
) -> ProblemResponse:
    answer_headers = dict(headers or {})
    if status in (429, 503):
        retry_after_s = 1.0 if retry_after_s is None else round(retry_after_s, 1)
        answer_headers["Retry-After"] = str(max(1, math.ceil(retry_after_s)))
    problem = Problem(
        type=f"urn:streamer:problem:{code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        code=code,
        retryable=retryable,
        retry_after_s=retry_after_s,
        request_id=getattr(request.state, "request_id", ""),
        errors=errors,
    )
    if status == 408:  # whoever sends so slowly must not keep the connection
        answer_headers["Connection"] = "close"
    content = problem.model_dump(mode="json", exclude_none=True)
    return ProblemResponse(content, status_code=status, headers=answer_headers)


def _http_detail(request: Request, error: HTTPException) -> str:
    match error.status_code:
        case 404:
            return f"There is nothing at {request.url.path}; /docs lists what is."
        case 405:
            return f"{request.method} does not work on {request.url.path}; /docs lists what does."
        case _:
            return str(error.detail)


def _field_problem(error: Mapping[str, Any], fields: Mapping[str, Sequence[str]]) -> FieldProblem:
    kind = str(error["type"])
    message = explained(kind, str(error["msg"]), error.get("ctx"))
    path = [str(part) for part in error["loc"][1:]] or [str(error["loc"][0])]
    if kind == "json_invalid":
        path = ["body"]
    elif kind == "extra_forbidden":
        message += _nearest(".".join(path[:-1]), path[-1], fields)
    return FieldProblem(field=".".join(path), code=kind, message=message)


def _nearest(section: str, name: str, fields: Mapping[str, Sequence[str]]) -> str:
    elsewhere = [_join(place, name) for place, names in fields.items() if name in names]
    elsewhere = [path for path in elsewhere if path != _join(section, name)]
    if elsewhere:
        return f"; did you mean {elsewhere[0]}?"
    return nearest_name(name, fields.get(section, ()))


def _join(section: str, name: str) -> str:
    return f"{section}.{name}" if section else name
