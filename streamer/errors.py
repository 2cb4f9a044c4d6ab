"""The one error tree. Every error that the world can cause is a `StreamerError`.

::

    StreamerError                code  retryable  http  ws
    |- ConfigError               bad settings, unknown key, wrong value          400
    |- SourceError
    |   |- SourceUnavailable     cannot open, refused, DNS (retryable)           502
    |   |- SourceDenied          the camera answered 401 or 403                  424
    |   |- SourceForbidden       our own policy refuses this address or scheme   403
    |   |- SourceUnsupported     codec, pixel format, no video track             415
    |   `- SourceStalled         no frame for too long (retryable)               504
    |- ModelError
    |   |- CheckpointError       missing, unexpected or mis-shaped keys, listed  422
    |   |- ShapeMismatch         expected pattern against found shape            422
    |   |- HorizonUnreachable    asked further ahead than the model can see      422
    |   `- NumericalError        non-finite latent, with where                   500
    |- CapacityError             queue full, replica gone (retryable)            503  1013
    |   |- StoreUnavailable      the store does not answer, or refuses           503  1013
    |   |- WorkerDied            the process that ran a session died             503  1013
    |   |- LatentLost            encode the clip again                          503  1013
    |   `- DeadlineExceeded                                                      504  1013
    |- NotFound                  unknown stream or model                         404  4404
    |- Conflict                  id taken, lease held                            409  4409
    |- LeaseLost                 an append or renewal with a stale token         409  4409
    |- Unauthorized, Forbidden   no or wrong token; scope missing           401, 403  4401, 4403
    `- FeedError
        |- ProtocolViolation     malformed client message                        400  4400
        |- ResumeGone            cursor older than the log (strict only)         410  4410
        `- SubscriberTooSlow     outbox full for longer than the grace           503  4408

Every fact goes to ``super().__init__`` as a positional argument: an exception with a keyword-only
field loses its type when Ray carries it between processes. A contract test pickles each class.
Messages are sentences that name the fact and the way out; URLs pass through
`streamer.sources.redact` before they get here.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "CapacityError",
    "CheckpointError",
    "ConfigError",
    "Conflict",
    "DeadlineExceeded",
    "FeedError",
    "Forbidden",
    "HorizonUnreachable",
    "LatentLost",
    "LeaseLost",
    "ModelError",
    "NotFound",
    "NumericalError",
    "ProtocolViolation",
    "ResumeGone",
    "ShapeMismatch",
    "SourceDenied",
    "SourceError",
    "SourceForbidden",
    "SourceStalled",
    "SourceUnavailable",
    "SourceUnsupported",
    "StoreUnavailable",
    "StreamerError",
    "SubscriberTooSlow",
    "Unauthorized",
    "WorkerDied",
]


class StreamerError(Exception):
    """What the world did to us. ``str(error)`` is a sentence with the facts and the way out."""

    code: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False
    http_status: ClassVar[int] = 500
    ws_close: ClassVar[int] = 4500

    @property
    def message(self) -> str:
        return str(self.args[0]) if self.args else self.code

    def __str__(self) -> str:
        return self.message


class ConfigError(StreamerError):
    """A setting, option or request field has a value that cannot work."""

    code = "config"
    http_status = 400


class SourceError(StreamerError):
    """Something about a camera or a file."""

    code = "source"
    http_status = 502


class SourceUnavailable(SourceError):
    """Cannot be opened now: refused, unreachable, unknown host, timed out, not found."""

    code = "source_unavailable"
    retryable = True


class SourceDenied(SourceError):
    """The camera refused our credentials (401 or 403)."""

    code = "source_denied"
    http_status = 424


class SourceForbidden(SourceError):
    """Our own policy refuses this scheme, address or path."""

    code = "source_forbidden"
    http_status = 403


class SourceUnsupported(SourceError):
    """Opened, but there is nothing we can use: no video track, unknown codec, too many pixels."""

    code = "source_unsupported"
    http_status = 415


class SourceStalled(SourceError):
    """Opened, but no frame came for too long."""

    code = "source_stalled"
    retryable = True
    http_status = 504


class ModelError(StreamerError):
    """Something about a checkpoint or what was asked of it."""

    code = "model"


class CheckpointError(ModelError):
    """A checkpoint does not hold what its config promises; the keys are listed."""

    code = "checkpoint"
    http_status = 422


class ShapeMismatch(ModelError):
    """An array has another shape than the documented pattern."""

    code = "shape_mismatch"
    http_status = 422


class HorizonUnreachable(ModelError):
    """A horizon is further away than the rollout can reach.

    Args:
        message: sentence with the largest reachable horizon.
        largest_s: that horizon, seconds.
    """

    code = "horizon_unreachable"
    http_status = 422

    def __init__(self, message: str, largest_s: float) -> None:
        super().__init__(message, largest_s)
        self.largest_s = largest_s


class NumericalError(ModelError):
    """A latent, energy or loss is not finite; the message says where."""

    code = "numerical"


class CapacityError(StreamerError):
    """No room now.

    Args:
        message: sentence.
        retry_after_s: seconds after which another try makes sense.
    """

    code = "capacity"
    retryable = True
    http_status = 503
    ws_close = 1013

    def __init__(self, message: str, retry_after_s: float = 1.0) -> None:
        super().__init__(message, retry_after_s)
        self.retry_after_s = retry_after_s


class StoreUnavailable(CapacityError):
    """The store does not answer, or refuses us: an outage, until somebody brings it back."""

    code = "store_unavailable"


class WorkerDied(CapacityError):
    """The process that ran a session died: perhaps of that session, perhaps of another one's."""

    code = "worker_died"


class LatentLost(CapacityError):
    """A clip's latent is gone with the replica that had it: only encoding again brings it back."""

    code = "latent_lost"


class DeadlineExceeded(CapacityError):
    """The work could not finish in its time budget."""

    code = "deadline_exceeded"
    http_status = 504


class NotFound(StreamerError):
    """No such stream, model or file."""

    code = "not_found"
    http_status = 404
    ws_close = 4404


class Conflict(StreamerError):
    """The id is taken by something else, or somebody else holds the lease."""

    code = "conflict"
    http_status = 409
    ws_close = 4409


class LeaseLost(StreamerError):
    """An append or a renewal came with a token that is no longer the stream's lease."""

    code = "lease_lost"
    http_status = 409
    ws_close = 4409


class Unauthorized(StreamerError):
    """No token, or a token nobody issued."""

    code = "unauthorized"
    http_status = 401
    ws_close = 4401


class Forbidden(StreamerError):
    """A good token without the scope that this route needs."""

    code = "forbidden"
    http_status = 403
    ws_close = 4403


class FeedError(StreamerError):
    """Something about one feed connection."""

    code = "feed"
    http_status = 400
    ws_close = 4400


class ProtocolViolation(FeedError):
    """The client sent a message that the protocol does not know."""

    code = "protocol_violation"


class ResumeGone(FeedError):
    """A strict client asked to resume from events that are no longer retained."""

    code = "resume_gone"
    http_status = 410
    ws_close = 4410


class SubscriberTooSlow(FeedError):
    """The subscriber's outbox stayed full for longer than the grace time."""

    code = "subscriber_too_slow"
    retryable = True
    http_status = 503
    ws_close = 4408
