"""Options of an upload, in the query or as fields of the form; the form goes before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from streamer.gateway.schema import SamplingRequest, StreamCreate

__all__ = ["AnticipationOptions", "LatentOptions", "with_fields"]

_MAX_IDS = 64 * 1024


class _Options(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


def _split(value: Any) -> Any:
    """``0.5,1`` and repeated values alike."""
    if isinstance(value, str):
        return value.split(",")
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ",".join(value).split(",")
    return value


class AnticipationOptions(_Options):
    """How the file is to be anticipated; what is left out is the service's setting."""

    name: str | None = Field(
        default=None,
        min_length=1,
        max_length=64,
        pattern=r"^[^\x00-\x1f\x7f]+$",
        description="`stream` of the events; the file's name without its ending when absent",
    )
    horizons_s: Annotated[list[Annotated[float, Field(gt=0)]], BeforeValidator(_split)] | None = (
        Field(
            default=None,
            min_length=1,
            description="how far to look ahead, seconds, with commas; rounded up to whole steps",
        )
    )
    mode: Literal["contiguous", "gap"] | None = None
    fps: float | None = Field(default=None, gt=0, description="frames per second the model sees")
    stride_s: float | None = Field(default=None, gt=0, description="seconds between clips")
    frames: int | None = Field(default=None, ge=1, description="frames per clip")

    def as_stream(self) -> StreamCreate:
        """The same as a request for a stream, to be checked and filled in like one."""
        sampling = SamplingRequest(fps=self.fps, stride_s=self.stride_s, frames=self.frames)
        return StreamCreate(
            source="upload:", mode=self.mode, horizons_s=self.horizons_s, sampling=sampling
        )


class LatentOptions(_Options):
    """Which clip of the file, and which of its tokens."""

    start_s: float = Field(default=0.0, ge=0, description="where the clip begins, seconds")
    fps: float | None = Field(
        default=None, gt=0, description="frames per second to sample; default 4"
    )
    frames: int | None = Field(
        default=None, ge=1, description="frames in the clip; as the model was trained when absent"
    )
    context_ids: str | None = Field(
        default=None,
        max_length=_MAX_IDS,
        description="tokens to see, such as 0-100,200; all but the targets when absent",
    )
    target_ids: str | None = Field(
        default=None,
        max_length=_MAX_IDS,
        description="tokens to predict, which may lie after the clip; no prediction when absent",
    )


_Kind = TypeVar("_Kind", AnticipationOptions, LatentOptions)


def with_fields(options: _Kind, fields: Mapping[str, str]) -> _Kind:
    """`options` of the query, and those of the form over them.

    Raises:
        RequestValidationError: a field that is none, or cannot be.
    """
    if not fields:
        return options
    given = options.model_dump(exclude_unset=True) | dict(fields)
    try:
        return type(options).model_validate(given)
    except ValidationError as error:
        found = [_of_body(problem) for problem in error.errors()]
        raise RequestValidationError(found) from error


def _of_body(problem: ErrorDetails) -> dict[str, Any]:
    return {**problem, "loc": ("body", *problem["loc"])}
