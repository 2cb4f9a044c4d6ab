"""Where a store is, and its bounds."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamer.errors import ConfigError
from streamer.store.redis_address import check_address

__all__ = ["StoreConfig"]

_COUNTS = (
    "max_streams",
    "max_events",
    "max_body_bytes",
    "max_log_bytes",
    "max_deleted_logs",
    "max_deleted",
    "max_connections",
    "max_pictures",
    "max_picture_bytes",
    "max_pictures_bytes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """Which store, and how much it keeps. Age is bounded per stream, by `StreamSpec.retain_s`."""

    url: str = field(default="", repr=False)
    """``redis://``, ``rediss://`` (TLS) or ``unix://`` of a Redis or Valkey; empty: embedded, in
    memory. May hold user and password, so it is never shown whole."""
    password: str = field(default="", repr=False)
    """Of that Redis, where the URL has none."""
    prefix: str = "streamer"
    """Begin of every key and channel in that Redis; services with different ones can share it."""
    require_aof: bool = True
    """Refuse a Redis that would lose the log with its process; false for a managed server that
    keeps data in another way."""
    start_s: float = 10.0
    """How long to wait at start for a Redis that does not answer yet, seconds."""
    timeout_s: float = 1.5
    """Longest time for one answer of Redis, seconds; two must fit into a lease."""
    max_connections: int = 32
    """Connections of one process to Redis; one more listens for news."""
    max_streams: int = 1000
    """Registered streams; one more is a `CapacityError`."""
    max_events: int = 20_000
    """Events retained per stream."""
    max_body_bytes: int = 262_144
    """Largest event."""
    max_log_bytes: int = 1 << 30
    """Embedded only: bodies of all streams together; above it those nearest to their end go first.
    In Redis `maxmemory` bounds them; at it appends are refused until events are too old."""
    max_pictures: int = 60
    """Pictures retained per stream and kind (snapshot, latent), each for its own TTL at most."""
    max_picture_bytes: int = 32_768
    """Largest picture."""
    max_pictures_bytes: int = 1 << 28
    """Embedded only: pictures of all streams together; above it those put first go first."""
    max_deleted_logs: int = 64
    """Deleted streams whose events stay readable; the longest deleted loses its events first."""
    max_deleted: int = 10_000
    """Deleted streams whose last seq is remembered one by one (see `MemoryStore`)."""

    def __post_init__(self) -> None:
        for name in _COUNTS:
            if getattr(self, name) < 1:
                raise ConfigError(f"store.{name} is {getattr(self, name)}; it must be at least 1.")
        if self.max_body_bytes > self.max_log_bytes:
            raise ConfigError(
                f"store.max_body_bytes is {self.max_body_bytes}, more than all logs together "
                f"may have (store.max_log_bytes, {self.max_log_bytes})."
            )
        if self.max_picture_bytes > self.max_pictures_bytes:
            raise ConfigError(
                f"store.max_picture_bytes is {self.max_picture_bytes}, more than all pictures"
                f" together may have (store.max_pictures_bytes, {self.max_pictures_bytes})."
            )
        if self.start_s < 0 or self.timeout_s <= 0:
            raise ConfigError("store.start_s must be 0 or more and store.timeout_s positive.")
        if not self.prefix or not self.prefix.replace("-", "a").replace(":", "a").isalnum():
            raise ConfigError(
                f"store.prefix is {self.prefix!r}; it takes letters, digits, - and : only."
            )
        if self.url:
            check_address(self.url)
