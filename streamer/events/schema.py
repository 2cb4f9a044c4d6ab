"""Every message on the wire, as pydantic models. One definition of each; docs/contract.md explains.

Server messages carry ``type id stream time``; retained ones also ``seq``. Unknown fields and types
must be ignored by clients; fields are never renamed, only added. Times are RFC 3339 UTC with
microseconds; durations carry their unit in the name.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

__all__ = [
    "Anticipation",
    "ClientMessage",
    "ErrorMessage",
    "FeedOptions",
    "FeedResume",
    "FutureLabels",
    "Gap",
    "Heartbeat",
    "LabelScore",
    "LatencyMs",
    "ModelRef",
    "ServerMessage",
    "SessionClosing",
    "SessionCreated",
    "SessionUpdate",
    "SessionUpdated",
    "StreamHead",
    "StreamState",
    "Surprise",
    "Window",
    "client_message",
    "server_message",
]

Note = Literal[
    "degraded_fps",
    "stale_window",
    "superseded",
    "extrapolated",
    "padded",
    "filled",
    "untrained",
    "prior_lost",
]
Time = Annotated[str, Field(description="RFC 3339, UTC, microseconds")]


class _Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


# parts of an anticipation -----------------------------------------------------------------------
class Window(_Wire):
    """What the model saw."""

    start: Time
    end: Time
    frames: int
    fps: float
    first_frame: int = Field(description="source picture number of the first frame")
    last_frame: int
    dropped: int = Field(description="pictures lost inside the window")
    filled: int = Field(default=0, description="frames that repeat their predecessor")


class LabelScore(_Wire):
    id: int
    label: str
    score: float


class FutureLabels(_Wire):
    """One horizon."""

    horizon_s: float = Field(description="end of the predicted tubelet, seconds after window.end")
    start: Time = Field(description="capture time of the first predicted frame")
    end: Time
    heads: dict[str, list[LabelScore]] = Field(default_factory=dict)
    drift: float = Field(description="L1 distance to the tubelet one step before it")


class Surprise(_Wire):
    """How wrong the future published in event `predicted_by` was for this window."""

    value: float = Field(description="mean absolute error in the layer-normed latent space")
    z: float | None = Field(description="robust z-score; null while the baseline fills")
    baseline: float | None = Field(description="running median of value")
    horizon_s: float
    predicted_by: int


class LatencyMs(_Wire):
    """Durations on each process's own clock; `transfer` is the residual, so the parts sum."""

    decode: float
    assemble: float
    queue: float
    encode: float
    rollout: float
    probe: float
    transfer: float
    total: float = Field(description="time - capture_time")


class ModelRef(_Wire):
    name: str
    fingerprint: str
    trained: bool = Field(description="false: random weights, the numbers mean nothing")


# server -> client, retained ---------------------------------------------------------------------
class _Retained(_Wire):
    id: str = Field(description="<epoch>:<seq>, the cursor")
    stream: str
    seq: int = Field(ge=1, description="per stream, from 1, no holes")
    time: Time = Field(description="when appended")


class Anticipation(_Retained):
    """Per clip: what is going on and what happens next."""

    type: Literal["anticipation"] = "anticipation"
    capture_time: Time = Field(description="UTC capture of the newest frame used")
    capture_clock: Literal["rtcp", "media", "arrival", "file"]
    window: Window
    present: dict[str, list[LabelScore]] = Field(default_factory=dict)
    futures: list[FutureLabels]
    surprise: Surprise | None
    latency_ms: LatencyMs
    model: ModelRef
    notes: list[Note] = Field(default_factory=list)


class StreamState(_Retained):
    type: Literal["stream.state"] = "stream.state"
    state: Literal["starting", "live", "stalled", "reconnecting", "paused", "ended", "failed"]
    reason: str = ""
    detail: str = ""
    retry_in_s: float | None = None
    have: int | None = None
    need: int | None = None


# server -> client, not retained -----------------------------------------------------------------
class _Transient(_Wire):
    id: str = Field(description="ULID")
    time: Time


class StreamHead(_Wire):
    stream: str
    epoch: str
    head_seq: int
    first_seq: int


class FeedOptions(_Wire):
    """What a subscriber wants; every field optional, None means everything."""

    types: list[str] | None = Field(default=None, description="event types to send")
    horizons_s: list[float] | None = Field(default=None, description="horizons to keep in futures")
    heads: list[str] | None = Field(default=None, description="label heads to keep")
    top_k: int | None = Field(default=None, ge=1, description="labels kept per head")
    min_score: float | None = Field(default=None, ge=0, le=1)


class SessionCreated(_Transient):
    """First message on every feed."""

    type: Literal["session.created"] = "session.created"
    session: str
    protocol: Literal["streamer.v1"] = "streamer.v1"
    streams: list[StreamHead]
    options: FeedOptions
    limits: dict[str, float]


class SessionUpdated(_Transient):
    """Answer to `session.update` or `feed.resume`: the effective options."""

    type: Literal["session.updated"] = "session.updated"
    options: FeedOptions
    in_reply_to: str | None = None


class Gap(_Transient):
    """The only way in which loss is ever told."""

    type: Literal["gap"] = "gap"
    stream: str
    from_seq: int
    to_seq: int
    reason: Literal["slow_subscriber", "retention", "restart"]


class Heartbeat(_Transient):
    type: Literal["heartbeat"] = "heartbeat"
    stream: str
    head_seq: int


class SessionClosing(_Transient):
    type: Literal["session.closing"] = "session.closing"
    reason: str
    retry_after_s: float
    resume_after: dict[str, str]


class ErrorMessage(_Transient):
    type: Literal["error"] = "error"
    code: str
    message: str
    retryable: bool
    in_reply_to: str | None = None


ServerMessage = Annotated[
    Anticipation
    | StreamState
    | SessionCreated
    | SessionUpdated
    | Gap
    | Heartbeat
    | SessionClosing
    | ErrorMessage,
    Field(discriminator="type"),
]
server_message: TypeAdapter[ServerMessage] = TypeAdapter(ServerMessage)


# client -> server -------------------------------------------------------------------------------
class SessionUpdate(FeedOptions):
    """Change options, flat: only the fields given change; null takes a filter away."""

    type: Literal["session.update"]
    id: str | None = Field(default=None, max_length=128, description="echoed as in_reply_to")


class FeedResume(_Wire):
    """Go on after these cursors."""

    type: Literal["feed.resume"]
    id: str | None = Field(default=None, max_length=128)
    after: dict[str, str | int] = Field(description="stream -> event id, or seq of this epoch")
    strict: bool = False


ClientMessage = Annotated[SessionUpdate | FeedResume, Field(discriminator="type")]
client_message: TypeAdapter[ClientMessage] = TypeAdapter(ClientMessage)
