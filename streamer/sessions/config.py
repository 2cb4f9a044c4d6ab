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
    rejections_told: int = 5
    """So many clips of a camera in a row without room, or without finite numbers, are said in its
    feed; 1 or more."""
    file_clips: int = 1
    """Clips of a file that may wait for the model before the decoder is held back."""
    snapshots: bool = True
    """Keep one JPEG per stride of what the model sees, for `/snapshot.jpg`. Off, no picture of the
    camera leaves this process."""
    snapshot_ttl_s: float = 60.0
    """How long the store keeps a snapshot, seconds, up to 86400; at least three strides (and it
    keeps at most `store.max_pictures` of a stream)."""
    snapshot_bytes: int = 32_768
    """Largest snapshot, bytes, at least 4096; its quality gives way to that."""
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
        if self.snapshot_bytes < 4096:
            raise ConfigError(f"snapshot_bytes is {self.snapshot_bytes}; it is at least 4096.")
        if not 0 < self.snapshot_ttl_s <= 86_400:
            raise ConfigError(
                f"snapshot_ttl_s is {self.snapshot_ttl_s}; it is above 0 and at most 86400."
            )
        if self.stale_strides <= 0 or self.join_s <= 0:
            raise ConfigError("stale_strides and join_s must be positive.")
        if min(self.file_clips, self.rejections_told) < 1:
            raise ConfigError("file_clips and rejections_told must be 1 or more.")


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
    max_deaths: int = 3
    """A stream that kills the process of its session so often within `deaths_s` is quarantined."""
    deaths_s: float = 60.0
    """How long the death of such a process is remembered, seconds."""
    probation_s: float = 4.0
    """When streams are under suspicion, how long each of them runs before the next is opened,
    seconds; longer for those that ran longer before they died."""
    quarantine_s: float = 600.0
    """After this time a quarantined stream is tried again, seconds."""

    def __post_init__(self) -> None:
        if not 0 < self.poll_s < self.presence_ttl_s:
            raise ConfigError(
                f"poll_s is {self.poll_s} but must be positive and below presence_ttl_s"
                f" ({self.presence_ttl_s}), or the supervisor seems to be gone."
            )
        if min(self.healthy_s, self.cancel_after_s) <= 0 or self.max_sessions < 1:
            raise ConfigError("healthy_s, cancel_after_s and max_sessions must be positive.")
        if self.max_deaths < 2:
            raise ConfigError(
                f"max_deaths is {self.max_deaths} but must be at least 2: one death says nothing"
                " about which of the streams in a process was its cause."
            )
        if not 0 < self.probation_s <= self.deaths_s / self.max_deaths or self.quarantine_s <= 0:
            raise ConfigError(
                f"quarantine_s must be positive, and probation_s ({self.probation_s}) too and at"
                f" most deaths_s / max_deaths ({self.deaths_s / self.max_deaths:g})."
            )
