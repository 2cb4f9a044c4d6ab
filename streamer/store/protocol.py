"""What every store does: registry, leases, status, presence and the retained event log.

Two families of implementation share one contract-test suite: embedded (`memory.py`; in process, or
behind a named Ray actor) and Redis. Sessions, supervisor, rollout and gateways see only this.

Rules that every implementation keeps:

- ``seq`` is assigned by `append`, per stream, from 1, without holes; it goes on after a stream was
  deleted and created again in the same epoch.
- An append carries the lease token of the session; with a stale token nothing is written
  (`LeaseLost`). Appends of one stream are atomic and ordered.
- The log of a stream is bounded by count and age; what falls out is only ever the oldest.
- ``epoch`` names one life of the log. A store that lost its events has another epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from streamer.records import ModelInfo, Outcome, StreamRecord, StreamSpec

__all__ = [
    "Lease",
    "LogEntry",
    "LogSlice",
    "PictureKind",
    "Presence",
    "StageTime",
    "Store",
    "StoredPicture",
]

PictureKind: TypeAlias = Literal["snapshot", "latent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to run one stream, until it expires."""

    stream: str
    token: str
    owner: str
    """Who holds it, for people: replica or process name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One retained event. `body` is the message as JSON without ``id`` and ``seq``."""

    seq: int
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSlice:
    """A range read. Empty `entries` with ``first_seq > head_seq`` is an empty log."""

    epoch: str
    first_seq: int
    """Oldest retained; ``head_seq + 1`` when nothing is retained."""
    head_seq: int
    """Newest assigned; 0 before the first event."""
    entries: tuple[LogEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTime:
    """How long one stage takes in one replica."""

    batches: int
    """The newest ones, which were looked at."""
    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """A living replica, as it announced itself."""

    kind: Literal["ingest", "encoder", "rollout", "supervisor"]
    replica: str
    model: ModelInfo | None = None
    """For encoder and rollout: the model they serve, warmed up."""
    stages: dict[str, StageTime] = field(default_factory=dict)
    """`encode`, `rollout` -> how long the replica's newest batches took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPicture:
    """What a running session shows of itself: small, written once a stride, gone after its TTL."""

    captured_at_ns: int
    """UTC capture of the frame it shows."""
    media_type: str
    """Like ``image/jpeg``."""
    body: bytes


class Store(Protocol):
    """All methods are safe to cancel; a cancelled append may still have been written."""

    async def epoch(self) -> str:
        """Name of this life of the log."""

    # registry -----------------------------------------------------------------------------------
    async def create_stream(self, stream: str, spec: StreamSpec) -> tuple[StreamRecord, bool]:
        """Register; True when it is new, False when the same spec was registered already.

        Raises:
            Conflict: the id is registered with another spec.
            CapacityError: the store's bound on streams is reached.
        """

    async def get_stream(self, stream: str) -> StreamRecord:
        """Raises `NotFound`."""

    async def list_streams(self, *, after: str = "", limit: int = 1000) -> list[StreamRecord]:
        """Registered streams with id > `after`, in id order."""

    async def change_stream(
        self, stream: str, spec: StreamSpec, *, if_revision: int | None = None
    ) -> StreamRecord:
        """Replace the spec, keep `desired`, clear `outcome`; revision + 1 if that changes anything.

        Of two writers the last one wins, whole.

        Args:
            if_revision: change only the record of this revision.

        Raises:
            Conflict: the record has another revision than `if_revision`.
            NotFound: not registered.
        """

    async def set_desired(self, stream: str, desired: Literal["live", "paused"]) -> StreamRecord:
        """Say what is wanted and clear `outcome`; revision + 1 if that changes anything.

        Raises `NotFound`.
        """

    async def finish_stream(
        self, stream: str, *, lease: str, outcome: Outcome, if_revision: int | None = None
    ) -> None:
        """A session is over for good, or (empty) is not after all: set `outcome`.

        Args:
            if_revision: change only the record of this revision.

        Raises:
            Conflict: the record has another revision than `if_revision`.
            LeaseLost, NotFound: the stream is not the caller's, or not registered.
        """

    async def delete_stream(self, stream: str) -> None:
        """Unregister. Its lease, status and pictures go, its log stays readable until it ages out.

        Raises `NotFound`.
        """

    async def wait_registry(self, *, seen: int, timeout_s: float) -> int:
        """Return the registry's change counter once it differs from `seen`, or at the timeout."""

    # leases -------------------------------------------------------------------------------------
    async def acquire_lease(self, stream: str, *, owner: str, ttl_s: float) -> Lease:
        """Raises `Conflict` while another lease is fresh, `NotFound` for an unknown stream."""

    async def renew_lease(self, lease: Lease, *, ttl_s: float) -> None:
        """Raises `LeaseLost` when it expired, was taken over, or the stream was deleted."""

    async def release_lease(self, lease: Lease) -> None:
        """Idempotent; a stale token is ignored."""

    async def lease_holders(self) -> dict[str, str]:
        """Fresh leases: stream -> owner."""

    # status and presence ------------------------------------------------------------------------
    async def put_status(
        self, stream: str, status: dict[str, Any], *, lease: str, ttl_s: float
    ) -> None:
        """What a running session says of itself (JSON values); gone after the TTL.

        Raises `LeaseLost` when the token is not the stream's current lease.
        """

    async def get_status(self, stream: str) -> dict[str, Any] | None:
        """Newest fresh status, or None."""

    async def announce(self, presence: Presence, *, ttl_s: float) -> None:
        """A living replica says so; repeat within the TTL."""

    async def present(self, kind: str) -> list[Presence]:
        """Replicas of that kind announced within their TTL."""

    # pictures -----------------------------------------------------------------------------------
    async def put_picture(
        self, stream: str, *, lease: str, kind: PictureKind, picture: StoredPicture, ttl_s: float
    ) -> None:
        """Keep a picture for its TTL; beyond the bound in count the one put longest ago goes.

        Raises:
            LeaseLost: the token is not the stream's current lease.
            ValueError: larger than the store takes, or no picture by its fields.
        """

    async def get_picture(
        self, stream: str, kind: PictureKind, *, at_ns: int | None = None
    ) -> StoredPicture:
        """The picture put last, or the newest one captured at `at_ns` or before.

        Raises:
            NotFound: there is no such picture (the sentence says what is retained), or no such
                stream.
        """

    # event log ----------------------------------------------------------------------------------
    async def append(self, stream: str, *, lease: str, body: bytes) -> int:
        """Append one event, return its seq.

        Args:
            lease: token of the lease under which the event was made.
            body: JSON object without ``id`` and ``seq``.

        Raises:
            LeaseLost: the token is not the stream's current lease.
            ValueError: the body is no JSON object, or larger than the store takes.
        """

    async def read(self, stream: str, *, after_seq: int, limit: int = 256) -> LogSlice:
        """Events with seq > `after_seq`, oldest first. Raises `NotFound` when never registered."""

    async def wait(self, stream: str, *, after_seq: int, timeout_s: float) -> int:
        """Return the head seq once it exceeds `after_seq`, or the head as it is after the timeout.

        Raises `NotFound` when the stream was never registered.
        """
