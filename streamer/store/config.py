"""Bounds of a store."""

from __future__ import annotations

from dataclasses import dataclass

from streamer.errors import ConfigError

__all__ = ["StoreConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """How much one store keeps. Age is bounded per stream, by `StreamSpec.retain_s`."""

    max_streams: int = 1000
    """Registered streams; one more is a `CapacityError`."""
    max_events: int = 20_000
    """Events retained per stream."""
    max_body_bytes: int = 262_144
    """Largest event."""
    max_log_bytes: int = 1 << 30
    """Bodies of all streams together; above it those nearest to their end go first."""
    max_deleted_logs: int = 64
    """Deleted streams whose events stay readable; the longest deleted loses its events first."""
    max_deleted: int = 10_000
    """Deleted streams whose last seq is remembered one by one (see `MemoryStore`)."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) < 1:
                raise ConfigError(f"store.{name} is {getattr(self, name)}; it must be at least 1.")
        if self.max_body_bytes > self.max_log_bytes:
            raise ConfigError(
                f"store.max_body_bytes is {self.max_body_bytes}, more than all logs together "
                f"may have (store.max_log_bytes, {self.max_log_bytes})."
            )
