"""Bodies, queries and answers of the REST API. Docs show the descriptions and examples."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from streamer.events.kinds import RETAINED_TYPES, check_types
from streamer.events.parts import ModelRef
from streamer.records import Outcome

__all__ = [
    "Check",
    "ClockCounts",
    "Counts",
    "Drops",
    "History",
    "HistoryGap",
    "HistoryQuery",
    "PageQuery",
    "Rates",
    "Readiness",
    "SamplingRequest",
    "SamplingView",
    "StreamCreate",
    "StreamPage",
    "StreamPatch",
    "StreamView",
    "Ticket",
    "TicketRequest",
    "Version",
]

StreamId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Cursor = Annotated[str, Field(max_length=64, examples=["7f3a:418", "418"])]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


# requests ---------------------------------------------------------------------------------------
class SamplingRequest(_Request):
    """How pictures become clips; what is left out is the service's setting."""

    fps: float | None = Field(
        default=None, gt=0, description="frames per second the model sees; default 4"
    )
    stride_s: float | None = Field(
        default=None,
        gt=0,
        description="seconds between clips, a multiple of the model's tubelet; default 1",
    )
    frames: int | None = Field(
        default=None,
        ge=1,
        description="frames per clip; at most what the model was built for, which is the default",
    )


class StreamCreate(_Request):
    """A camera, file or synthetic world to watch."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"id": "kitchen", "source": "rtsp://user:secret@192.0.2.7/main"},
                {
                    "id": "demo",
                    "source": "synthetic:bounce?seed=1",
                    "horizons_s": [0.5, 1, 2],
                    "sampling": {"fps": 4, "stride_s": 1},
                },
            ]
        }
    )

    id: StreamId | None = Field(
        default=None, description="makes the request idempotent; chosen by the server when absent"
    )
    source: str = Field(min_length=1, description="URL, credentials percent-encoded")
    model: str | None = Field(default=None, max_length=256, description="default: the served one")
    mode: Literal["contiguous", "gap"] | None = Field(
        default=None, description="default: the service's setting, contiguous"
    )
    horizons_s: list[Annotated[float, Field(gt=0)]] | None = Field(
        default=None,
        min_length=1,
        description="how far to look ahead, seconds, rounded up to whole steps; default: the"
        " service's setting, 0.5, 1 and 2",
    )
    sampling: SamplingRequest = Field(default_factory=SamplingRequest)
    retain_s: float | None = Field(
        default=None,
        gt=0,
        description="how long events are kept; default: the service's setting, one hour",
    )


class StreamPatch(_Request):
    """What is wanted of a stream from now on; what is left out stays as it is."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"state": "paused"},
                {"horizons_s": [0.5, 4], "sampling": {"stride_s": 0.5}},
            ]
        }
    )

    state: Literal["live", "paused"] | None = Field(
        default=None,
        description="`live` also starts a stream again that ended, failed or is quarantined",
    )
    source: str | None = Field(
        default=None, min_length=1, description="URL, credentials percent-encoded"
    )
    model: str | None = Field(default=None, max_length=256)
    mode: Literal["contiguous", "gap"] | None = None
    horizons_s: list[Annotated[float, Field(gt=0)]] | None = Field(
        default=None, min_length=1, description="seconds, rounded up to whole steps"
    )
    sampling: SamplingRequest = Field(default_factory=SamplingRequest)
    retain_s: float | None = Field(default=None, gt=0, description="how long events are kept")

    @property
    def settings(self) -> dict[str, Any]:
        """What was given besides the state."""
        return self.model_dump(exclude={"state"}, exclude_none=True, exclude_defaults=True)

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.state is None and not self.settings:
            names = ", ".join(type(self).model_fields)
            raise ValueError(f"nothing to change; give at least one of {names}")
        return self


class PageQuery(_Request):
    after: str = Field(default="", max_length=64, description="last id of the page before")
    limit: int = Field(default=50, ge=1)


class HistoryQuery(_Request):
    after: Cursor | None = Field(default=None, description="event id or seq, exclusive")
    before: Cursor | None = Field(default=None, description="event id or seq, exclusive")
    limit: int = Field(default=100, ge=1)
    types: str = Field(
        default="anticipation",
        max_length=256,
        description="types of retained events to give, with commas: anticipation, surprise and"
        " stream.state",
        examples=["anticipation,surprise"],
    )

    @field_validator("types")
    @classmethod
    def _are_retained(cls, types: str) -> str:
        check_types((part.strip() for part in types.split(",")), known=RETAINED_TYPES)
        return types


class TicketRequest(_Request):
    """What a feed ticket is for."""

    streams: list[StreamId] | None = Field(
        default=None, min_length=1, max_length=64, description="all when absent"
    )


# streams ----------------------------------------------------------------------------------------
class SamplingView(BaseModel):
    frames: int
    fps: float
    stride_s: float


class Rates(BaseModel):
    fps_in: float = Field(description="decoded pictures per second")
    fps_used: float = Field(description="frames per second that went into clips")


class Drops(BaseModel):
    """What was thrown away since the session began, and why."""

    dropped: int = Field(description="pictures lost to overflow")
    clips_superseded: int = Field(description="clips that a newer one replaced")
    clips_rejected: int = Field(description="clips the model pool had no room for")
    rollouts_superseded: int = Field(
        default=0, description="events without their later horizons, for a newer clip"
    )


class Counts(BaseModel):
    """Totals since the session began."""

    pictures: int
    used: int
    sampled_out: int
    filled: int
    clips: int
    clips_encoded: int
    clips_published: int


class ClockCounts(BaseModel):
    """Of the present connection to the source."""

    clock_reports: int = Field(description="RTCP sender reports that could be told apart")
    clock_outliers: int = Field(description="reports and pictures with a time that was ignored")
    clock_jumps: int = Field(description="times its wall clock or presentation times were set anew")
    pts_missing: int = Field(description="pictures without a presentation time")
    pts_repeated: int = Field(description="pictures with that of the picture before")


class StreamView(BaseModel):
    """One stream: what was asked, what is wanted, what is."""

    id: str
    source: str = Field(description="without credentials")
    model: ModelRef | None = Field(description="null while no replica serves it")
    mode: Literal["contiguous", "gap"]
    horizons_s: list[float]
    sampling: SamplingView
    retain_s: float
    desired: Literal["live", "paused"]
    outcome: Outcome = Field(
        description="ended or failed: over for good; quarantined: killed the process that ran it"
    )
    state: str = Field(description="starting, live, stalled, reconnecting, paused, ended or failed")
    reason: str = ""
    detail: str = ""
    retry_in_s: float | None = None
    have: int | None = None
    need: int | None = None
    owner: str | None = Field(default=None, description="replica that runs the session")
    generation: int | None = Field(default=None, description="connections to the source so far")
    rates: Rates | None = Field(default=None, description="null without a running session")
    drops: Drops | None = None
    counts: Counts | None = None
    lag_s: float | None = Field(
        default=None, description="newest picture's arrival to its event's publication"
    )
    clock: str | None = Field(
        default=None, description="behind capture times: rtcp, media, arrival or file"
    )
    clock_why: str | None = Field(
        default=None,
        description="ok, no_reports, skewed, jumped, no_pts or repeated_pts: why that clock",
    )
    clock_offset_s: float | None = Field(
        default=None, description="source's wall clock minus ours at arrival; positive is fast"
    )
    clock_drift_ppm: float | None = Field(
        default=None, description="how fast the source's media clock runs against ours"
    )
    clock_report_age_s: float | None = Field(
        default=None, description="since the newest RTCP sender report"
    )
    clock_counts: ClockCounts | None = None
    epoch: str
    head_seq: int = Field(description="newest event; 0 before the first")
    first_seq: int = Field(description="oldest retained event")
    revision: int = Field(description="+1 with each change of what is wanted")
    applied_revision: int | None = Field(
        default=None, description="what the running session does; null without one"
    )
    created: str
    feed: str = Field(description="path of the WebSocket")


class StreamPage(BaseModel):
    streams: list[StreamView]
    next_after: str | None = Field(description="`after` of the next page; null on the last")


class HistoryGap(BaseModel):
    """What was asked for and is not there."""

    from_seq: int
    to_seq: int
    reason: Literal["retention", "restart"]


class History(BaseModel):
    """Retained events, oldest first; anticipations unless other types were asked for."""

    stream: str
    epoch: str
    first_seq: int
    head_seq: int
    gap: HistoryGap | None = None
    next_after: str = Field(description="`after` that continues from here, now or later")
    events: list[dict[str, Any]] = Field(description="as on the feed")


# access -----------------------------------------------------------------------------------------
class Ticket(BaseModel):
    """Opens feeds as `?ticket=...`."""

    ticket: str
    expires_in_s: float = Field(description="to connect within; an open feed stays open")
    required: bool = Field(description="false: this server asks for no tokens at all")


# health -----------------------------------------------------------------------------------------
class Check(BaseModel):
    name: str
    ok: bool
    reason: str = Field(description="what is wrong, or what was found")


class Readiness(BaseModel):
    ready: bool
    checks: list[Check]


class Version(BaseModel):
    version: str
    commit: str
    runtime: Literal["local", "ray"]
    api: Literal["v1"] = "v1"
    feed: Literal["streamer.v1"] = "streamer.v1"
    python: str
