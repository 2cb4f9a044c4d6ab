"""Every message on the wire, as pydantic models. One definition of each; docs/contract.md explains.

Server messages carry ``type id stream time``; retained ones also ``seq``. Unknown fields and types
must be ignored by clients; fields are never renamed, only added (``extra="forbid"`` here is for
makers and for what clients send). Times are RFC 3339 UTC with microseconds; durations carry their
unit in the name.

A maker of a retained event builds the ``...Body`` class, which has no ``id`` and ``seq`` (the log
assigns them), and appends `retained_body` of it::

    body = StreamStateBody(stream="kitchen", time=format_utc(wall_ns()), state="live")
    seq = await store.append("kitchen", lease=token, body=retained_body(body))

A not finite number is refused at construction (`pydantic.ValidationError`).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictInt, TypeAdapter, WithJsonSchema, field_validator

from streamer.events.kinds import check_types
from streamer.events.parts import (
    FutureLabels,
    LabelScore,
    LatencyMs,
    ModelRef,
    Note,
    Surprise,
    SurprisePeak,
    Time,
    TimeSpan,
    Window,
    Wire,
)

__all__ = [
    "Anticipation",
    "AnticipationBody",
    "ClientMessage",
    "ErrorMessage",
    "FeedContinue",
    "FeedOptions",
    "FeedPause",
    "FeedResume",
    "Gap",
    "Heartbeat",
    "LatentPanel",
    "LatentPicture",
    "Quantiles",
    "ServerMessage",
    "SessionClosing",
    "SessionCreated",
    "SessionUpdate",
    "SessionUpdated",
    "Stats",
    "StreamHead",
    "StreamState",
    "StreamStateBody",
    "StreamStats",
    "SurpriseEpisode",
    "SurpriseEpisodeBody",
    "client_message",
    "retained_body",
    "server_message",
]

Name = Annotated[str, Field(min_length=1, max_length=128)]


# server -> client, retained ---------------------------------------------------------------------
class _Body(Wire):
    stream: str
    time: Time = Field(description="when appended")


class _Retained(Wire):
    id: str = Field(description="<epoch>:<seq>, the cursor")
    seq: int = Field(ge=1, description="per stream, from 1, no holes")


class AnticipationBody(_Body):
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


class SurpriseEpisodeBody(_Body):
    """The stream begins to surprise, still does, or is itself again. Each phase says all there is
    to say, so one may be missed."""

    type: Literal["surprise"] = "surprise"
    phase: Literal["begin", "update", "end"]
    episode: str = Field(description="ULID, the same in all phases")
    reason: Literal["calm", "reconnected", "too_long", "restart", "stopped"] | None = Field(
        default=None, description="why it ended; null before the end"
    )
    window: TimeSpan = Field(description="what the clip saw that brought this event")
    start: Time = Field(description="UTC capture of the newest frame of the first clip in it")
    end: Time | None = Field(default=None, description="likewise of the last; null before the end")
    duration_s: float = Field(description="from start to the newest clip in it")
    peak: SurprisePeak
    value: float | None = Field(description="of this clip; null when nothing was foretold for it")
    z: float | None
    baseline: float | None = Field(description="as it stands still while the episode lasts")
    threshold: float | None = Field(
        description="z-score at which an episode begins; null when whoever closed it cannot know"
    )
    anticipation: int = Field(description="seq of this clip's anticipation")
    model: ModelRef


class StreamStateBody(_Body):
    """What the stream's source or session says of itself."""

    type: Literal["stream.state"] = "stream.state"
    state: Literal["starting", "live", "stalled", "reconnecting", "paused", "ended", "failed"]
    reason: str = Field(default="", description="short code: opening, filling, eof, refused, ...")
    detail: str = Field(default="", description="one sentence for people, without credentials")
    retry_in_s: float | None = None
    have: int | None = Field(default=None, description="with reason filling: frames collected")
    need: int | None = Field(default=None, description="frames needed for the first clip")


class Anticipation(_Retained, AnticipationBody):
    """Per clip: what is going on and what happens next."""


class SurpriseEpisode(_Retained, SurpriseEpisodeBody):
    """The stream begins to surprise, still does, or is itself again."""


class StreamState(_Retained, StreamStateBody):
    """What the stream's source or session says of itself."""


def retained_body(event: AnticipationBody | SurpriseEpisodeBody | StreamStateBody) -> bytes:
    """The event as the log keeps it: compact JSON in UTF-8, without ``id`` and ``seq``."""
    return event.model_dump_json(exclude={"id", "seq"}).encode()


# server -> client, not retained -----------------------------------------------------------------
class _Transient(Wire):
    id: str = Field(description="ULID")
    time: Time


class StreamHead(Wire):
    """Where one stream's log stood when the session began."""

    stream: str
    epoch: str
    head_seq: int = Field(description="newest; 0 before the first event")
    first_seq: int = Field(description="oldest retained; head_seq + 1 when nothing is")


class FeedOptions(Wire):
    """What a subscriber wants; every field optional, null means everything. Hashable.

    `types` chooses among retained events; all other messages come in any case, `stats` and
    `latent.picture` when they are asked for. What follows it up to `min_score` thins out
    anticipations.
    """

    types: tuple[Name, ...] | None = Field(
        default=None, max_length=32, description="types of retained events to send"
    )
    horizons_s: tuple[float, ...] | None = Field(
        default=None,
        max_length=64,
        description="horizons to keep in futures, each rounded up to the stream's next one",
    )
    heads: tuple[Name, ...] | None = Field(
        default=None, max_length=64, description="label heads to keep"
    )
    top_k: int | None = Field(default=None, ge=1, description="labels kept per head")
    min_score: float | None = Field(default=None, ge=0, le=1, description="labels below are cut")
    max_rate_hz: float | None = Field(
        default=None,
        gt=0,
        le=1000,
        description="anticipations per stream and second of their `time`, on average; those "
        "between are left out, which is no loss",
    )
    stats: bool | None = Field(default=None, description="true: one `stats` per stream and second")
    picture: bool | None = Field(
        default=None,
        description="true: a `latent.picture` after an anticipation, where there is one and the"
        " subscriber keeps up",
    )

    @field_validator("types")
    @classmethod
    def _are_types(cls, types: tuple[str, ...] | None) -> tuple[str, ...] | None:
        check_types(types or ())
        return types


class SessionCreated(_Transient):
    """First message on every feed."""

    type: Literal["session.created"] = "session.created"
    session: str
    protocol: Literal["streamer.v1"] = "streamer.v1"
    streams: list[StreamHead]
    options: FeedOptions
    limits: dict[str, Annotated[int | float, WithJsonSchema({"type": "number"})]]


class SessionUpdated(_Transient):
    """Answer to every message that was accepted: what holds from now on."""

    type: Literal["session.updated"] = "session.updated"
    options: FeedOptions
    streams: list[str] = Field(default_factory=list, description="streams that this feed carries")
    paused: bool = False
    in_reply_to: str | None = None


class Gap(_Transient):
    """The only way in which loss is ever told: these events of the stream will not come.

    After `restart` the numbers are those of the new epoch, whose start may be lost too; an empty
    range (``to_seq = from_seq - 1``) says that all of the new log follows. A client forgets its
    last seq then.
    """

    type: Literal["gap"] = "gap"
    stream: str
    from_seq: int
    to_seq: int = Field(description="inclusive")
    reason: Literal["slow_subscriber", "retention", "restart"]


class Heartbeat(_Transient):
    """Nothing to say for a while; the connection is alive and the log stands at `head_seq`."""

    type: Literal["heartbeat"] = "heartbeat"
    stream: str
    head_seq: int


class Quantiles(Wire):
    p50: float
    p95: float


class StreamStats(Wire):
    """How a stream is doing; null is not known, as while no session runs."""

    stream: str
    state: str | None = None
    head_seq: int
    fps_in: float | None = Field(default=None, description="decoded pictures per second")
    fps_used: float | None = Field(default=None, description="frames per second into clips")
    dropped: int | None = Field(default=None, description="pictures lost since the session began")
    clips_superseded: int | None = Field(default=None, description="clips a newer one replaced")
    clips_rejected: int | None = Field(default=None, description="clips there was no room for")
    rollouts_superseded: int | None = Field(
        default=None, description="events without their later horizons, for a newer clip"
    )
    lag_s: float | None = Field(default=None, description="newest picture to its event")
    clock: str | None = Field(default=None, description="behind capture times, as capture_clock")
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
    anticipations: int = Field(description="newest ones that latency_ms is of")
    latency_ms: dict[str, Quantiles] = Field(description="stage, as in anticipations -> quantiles")


class Stats(_Transient, StreamStats):
    """How a stream is doing: once a second with the option `stats`."""

    type: Literal["stats"] = "stats"


class LatentPanel(Wire):
    """A latent as colours, one pixel per token; the three directions in which the model's tokens
    differ most are red, green and blue, by a basis fixed per model."""

    horizon_s: float = Field(description="0: the newest tubelet that was seen")
    png: str = Field(description="data URL; enlarge it without smoothing")


class LatentPicture(_Transient):
    """After an anticipation, with the option `picture`. It is the first to be left out when a
    subscriber is slow, and no `gap` tells of it."""

    type: Literal["latent.picture"] = "latent.picture"
    stream: str
    anticipation: int = Field(description="seq of the anticipation that it shows")
    capture_time: Time = Field(description="of that anticipation")
    panels: list[LatentPanel] = Field(description="by rising horizon")


class SessionClosing(_Transient):
    """The server goes away; the socket is closed with 1012 right after."""

    type: Literal["session.closing"] = "session.closing"
    reason: str
    retry_after_s: float
    resume_after: dict[str, str] = Field(description="stream -> cursor of the last message sent")


class ErrorMessage(_Transient):
    """A client message was refused; nothing changed and the socket stays open."""

    type: Literal["error"] = "error"
    code: str
    message: str
    retryable: bool
    in_reply_to: str | None = None


ServerMessage = Annotated[
    Anticipation
    | SurpriseEpisode
    | StreamState
    | SessionCreated
    | SessionUpdated
    | Gap
    | Heartbeat
    | Stats
    | LatentPicture
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
    streams: tuple[Name, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=64,
        description="carry these from now on; new ones begin at their head. /v1/feed only",
    )


class FeedResume(Wire):
    """Go on after these cursors."""

    type: Literal["feed.resume"]
    id: str | None = Field(default=None, max_length=128)
    after: dict[Name, Annotated[str, Field(max_length=64)] | StrictInt] = Field(
        min_length=1, max_length=64, description="stream -> event id, or seq of this epoch"
    )
    strict: bool = Field(default=False, description="close with 4410 rather than tell a gap")


class FeedPause(Wire):
    """Send no events until `feed.continue`; nothing is lost that is still retained then."""

    type: Literal["feed.pause"]
    id: str | None = Field(default=None, max_length=128)


class FeedContinue(Wire):
    """Go on where `feed.pause` stopped."""

    type: Literal["feed.continue"]
    id: str | None = Field(default=None, max_length=128)


ClientMessage = Annotated[
    SessionUpdate | FeedResume | FeedPause | FeedContinue, Field(discriminator="type")
]
client_message: TypeAdapter[ClientMessage] = TypeAdapter(ClientMessage)
