"""How a feed behaves towards its subscriber."""

from __future__ import annotations

from dataclasses import dataclass

from streamer.errors import ConfigError

__all__ = ["FeedConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedConfig:
    """Bounds of one feed session."""

    outbox: int = 256
    """Events kept for a subscriber that does not take them; the oldest is dropped then."""
    slow_grace_s: float = 10.0
    """An outbox full without a break for longer than this closes the session (4408)."""
    heartbeat_s: float = 5.0
    """Silence after which a heartbeat is sent."""
    max_message_bytes: int = 16_384
    """Longest message accepted from a client, UTF-8."""
    max_errors: int = 16
    """So many refused client messages in a row close the session (4400)."""
    max_replies: int = 64
    """Answers kept for a client that asks but does not read; one more closes it (4408)."""
    read_limit: int = 256
    """Events asked of the log at once."""
    max_streams: int = 64
    """Streams that one feed may carry."""
    max_life_s: float = 3600.0
    """A connection is closed with 1012 at this age, somewhere in the last tenth of it, so that
    clients move on to the gateways there are by then."""
    render_cache: int = 4096
    """Filtered variants kept, over all sessions that share a renderer."""

    def __post_init__(self) -> None:
        for name in (
            "outbox",
            "max_errors",
            "max_replies",
            "max_streams",
            "read_limit",
            "render_cache",
        ):
            if getattr(self, name) < 1:
                raise ConfigError(f"feed.{name} is {getattr(self, name)}; it must be at least 1.")
        for name in ("slow_grace_s", "heartbeat_s"):
            if not 0 < getattr(self, name) <= 3600:
                raise ConfigError(
                    f"feed.{name} is {getattr(self, name)}; "
                    "it must be above 0 and at most 3600 seconds."
                )
        if not 0 < self.max_life_s <= 86_400:
            raise ConfigError(
                f"feed.max_life_s is {self.max_life_s}; "
                "it must be above 0 and at most 86400 seconds."
            )
        if self.max_message_bytes < 256:
            raise ConfigError(
                f"feed.max_message_bytes is {self.max_message_bytes}; "
                "it must be at least 256, or no option fits."
            )
