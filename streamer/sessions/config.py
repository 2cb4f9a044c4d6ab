"""How sessions and their supervisor behave. Imports no library."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamer.backoff import Backoff
from streamer.errors import ConfigError

__all__ = ["SessionConfig", "SupervisorConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionConfig:
    """One stream from source to clips in flight."""

    lease_ttl_s: float = 5.0
    """How long the stream stays ours after the last renewal, seconds."""
    renew_s: float = 1.5
    """Between two renewals, seconds; several must fit into the lease."""
    status_s: float = 1.0
    """Between two status reports, seconds."""
    status_ttl_s: float = 5.0
    """How long a status report is worth showing, seconds."""
    stale_strides: float = 2.0
    """A live clip that waited longer than this many strides is noted `stale_window`."""
    file_clips: int = 1
    """Clips of a file that may wait for the model before the decoder is held back."""
    join_s: float = 10.0
    """How long to wait for the decode thread after asking it to stop, seconds."""

    def __post_init__(self) -> None:
        if not 0 < 2 * self.renew_s <= self.lease_ttl_s:
            raise ConfigError(
                f"renew_s is {self.renew_s} but must be positive and at most half of lease_ttl_s"
                f" ({self.lease_ttl_s}), or one late renewal loses the stream."
            )
        if not 0 < self.status_s <= self.status_ttl_s:
            raise ConfigError(
                f"status_s is {self.status_s} but must be positive and at most status_ttl_s"
                f" ({self.status_ttl_s}), or the status disappears between two reports."
            )
        if self.stale_strides <= 0 or self.file_clips < 1 or self.join_s <= 0:
            raise ConfigError("stale_strides, file_clips and join_s must be positive.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorConfig:
    """The loop that makes running sessions match the registered streams."""

    poll_s: float = 1.0
    """Longest time between two looks at the registry and the leases, seconds."""
    retry: Backoff = field(default_factory=Backoff)
    """Waits before a session that broke is opened again. (A camera that is away is not its
    session's end: the source itself tries again.)"""
    healthy_s: float = 30.0
    """After a session that ran this long the failures before it are forgotten, seconds."""
    cancel_after_s: float = 10.0
    """A session whose stream is to run no longer ends by itself; one that does not is cancelled
    after this time, seconds."""
    max_sessions: int = 64
    """Sessions that this supervisor keeps open at once."""
    presence_ttl_s: float = 5.0
    """How long an announcement of this replica holds, seconds."""

    def __post_init__(self) -> None:
        if not 0 < self.poll_s < self.presence_ttl_s:
            raise ConfigError(
                f"poll_s is {self.poll_s} but must be positive and below presence_ttl_s"
                f" ({self.presence_ttl_s}), or the supervisor seems to be gone."
            )
        if min(self.healthy_s, self.cancel_after_s) <= 0 or self.max_sessions < 1:
            raise ConfigError("healthy_s, cancel_after_s and max_sessions must be positive.")
