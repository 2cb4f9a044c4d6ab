"""Messages that no log keeps: built here, each with a ULID and the wall time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from streamer.clock import format_utc, wall_ns
from streamer.errors import FeedError, StreamerError
from streamer.events.config import FeedConfig
from streamer.events.outbox import Loss
from streamer.events.schema import (
    ErrorMessage,
    FeedOptions,
    Gap,
    Heartbeat,
    LatentPicture,
    SessionClosing,
    SessionCreated,
    SessionUpdated,
    Stats,
    StreamHead,
    StreamStats,
)
from streamer.events.showcase import Shown
from streamer.events.track import Log
from streamer.events.ulid import Ulids

__all__ = ["Close", "Composer", "Message"]

_MAX_REASON_BYTES = 123

_Transient = (
    SessionCreated
    | SessionUpdated
    | SessionClosing
    | Gap
    | Heartbeat
    | Stats
    | LatentPicture
    | ErrorMessage
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message for the subscriber."""

    data: bytes
    """JSON, UTF-8."""
    type: str
    id: str
    """``<epoch>:<seq>`` for retained events, else a ULID."""
    is_retained: bool = False
    """True when `id` is a cursor."""


@dataclass(frozen=True, slots=True)
class Close:
    """How the socket is to be closed."""

    code: int
    message: str
    error: FeedError | None = None
    """What happened, for transports without close codes; None for a drain."""

    @property
    def reason(self) -> str:
        """`message`, cut to the 123 bytes of UTF-8 that a close frame can carry."""
        return self.message.encode()[:_MAX_REASON_BYTES].decode(errors="ignore")


class Composer:
    """Makes one session's transient messages.

    Args:
        wall: UTC nanoseconds now.
        ulids: ids.
    """

    def __init__(self, *, wall: Callable[[], int] = wall_ns, ulids: Ulids | None = None) -> None:
        self._wall = wall
        self._ulids = Ulids(wall=wall) if ulids is None else ulids
        self.session = self._ulids.next()
        """The session's own id."""

    def created(
        self, logs: Mapping[str, Log], options: FeedOptions, *, config: FeedConfig
    ) -> Message:
        return self._message(
            SessionCreated(
                id=self._ulids.next(),
                time=self._now(),
                session=self.session,
                streams=[_head(stream, log) for stream, log in logs.items()],
                options=options,
                limits=_limits(config),
            )
        )

    def updated(
        self,
        options: FeedOptions,
        *,
        in_reply_to: str | None,
        streams: Iterable[str] = (),
        is_paused: bool = False,
    ) -> Message:
        return self._message(
            SessionUpdated(
                id=self._ulids.next(),
                time=self._now(),
                options=options,
                in_reply_to=in_reply_to,
                streams=list(streams),
                paused=is_paused,
            )
        )

    def stats(self, stats: StreamStats) -> Message:
        return self._message(
            Stats(id=self._ulids.next(), time=self._now(), **stats.model_dump(exclude={"type"}))
        )

    def picture(self, shown: Shown) -> Message:
        return self._message(
            LatentPicture(
                id=self._ulids.next(),
                time=self._now(),
                stream=shown.stream,
                anticipation=shown.seq,
                capture_time=shown.capture_time,
                panels=list(shown.panels),
            )
        )

    def gap(self, stream: str, loss: Loss) -> Message:
        return self._message(
            Gap(
                id=self._ulids.next(),
                time=self._now(),
                stream=stream,
                from_seq=loss.from_seq,
                to_seq=loss.to_seq,
                reason=loss.reason,
            )
        )

    def heartbeat(self, stream: str, head_seq: int) -> Message:
        return self._message(
            Heartbeat(id=self._ulids.next(), time=self._now(), stream=stream, head_seq=head_seq)
        )

    def closing(
        self, *, reason: str, retry_after_s: float, resume_after: Mapping[str, str]
    ) -> Message:
        return self._message(
            SessionClosing(
                id=self._ulids.next(),
                time=self._now(),
                reason=reason,
                retry_after_s=retry_after_s,
                resume_after=dict(resume_after),
            )
        )

    def error(self, error: StreamerError, *, in_reply_to: str | None) -> Message:
        return self._message(
            ErrorMessage(
                id=self._ulids.next(),
                time=self._now(),
                code=error.code,
                message=error.message,
                retryable=error.retryable,
                in_reply_to=in_reply_to,
            )
        )

    def _now(self) -> str:
        return format_utc(self._wall())

    def _message(self, model: _Transient) -> Message:
        return Message(data=model.model_dump_json().encode(), type=model.type, id=model.id)


def _head(stream: str, log: Log) -> StreamHead:
    return StreamHead(
        stream=stream, epoch=log.epoch, head_seq=log.head_seq, first_seq=log.first_seq
    )


def _limits(config: FeedConfig) -> dict[str, int | float]:
    return {
        "outbox": config.outbox,
        "slow_grace_s": config.slow_grace_s,
        "heartbeat_s": config.heartbeat_s,
        "max_message_bytes": config.max_message_bytes,
        "max_streams": config.max_streams,
        "max_life_s": config.max_life_s,
    }
