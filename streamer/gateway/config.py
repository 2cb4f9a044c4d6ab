"""What one gateway process admits and how much of it."""

from __future__ import annotations

from dataclasses import dataclass

from streamer.errors import ConfigError

__all__ = ["GatewayConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """Bounds on size, count and time of everything a client can ask for."""

    max_body_bytes: int = 64 * 1024
    """Largest request body."""
    max_subscribers: int = 2000
    """Feed sockets of this process; one more is closed with 1013."""
    max_subscribers_per_token: int = 500
    """Of these, feeds that one access token may have."""
    min_fps: float = 0.5
    """Lowest sampling rate a stream may ask for, frames per second."""
    max_fps: float = 60.0
    """Highest one."""
    min_stride_s: float = 0.1
    """Shortest time between two clips that a stream may ask for, seconds."""
    max_stride_s: float = 3600.0
    """Longest one."""
    max_horizons: int = 16
    """Horizons per stream."""
    max_retain_s: float = 86_400.0
    """Longest time that a stream may have its events kept, seconds."""
    max_page: int = 200
    """Streams per page of the list."""
    max_history: int = 1000
    """Events per answer of the history."""
    store_timeout_s: float = 2.0
    """Readiness gives the store so long to answer."""
    max_loop_lag_s: float = 1.0
    """The process calls itself unhealthy when its event loop wakes up later than this."""
    tokens_file: str = ""
    """YAML or JSON list of ``{name, sha256, scopes}``; `streamer token new` writes the lines. Read
    again when it changes. Empty: no tokens, everybody may do everything."""
    ticket_s: float = 60.0
    """How long a feed ticket is good."""
    allowed_origins: tuple[str, ...] = ()
    """Origins of web pages on other hosts that may call, like `https://wall.example`; pages of the
    gateway itself always may, and clients that send no Origin are no web pages."""

    def __post_init__(self) -> None:
        counts = {
            name: getattr(self, name)
            for name in (
                "max_body_bytes",
                "max_subscribers",
                "max_subscribers_per_token",
                "max_horizons",
                "max_page",
                "max_history",
            )
        }
        for name, value in counts.items():
            if value < 1:
                raise ConfigError(f"{name} must be at least 1, not {value}.")
        if not 1 <= self.ticket_s <= 3600:
            raise ConfigError(f"ticket_s is {self.ticket_s}; choose from 1 to 3600 seconds.")
        _check_range("fps", self.min_fps, self.max_fps)
        _check_range("stride_s", self.min_stride_s, self.max_stride_s)
        for name in ("max_retain_s", "store_timeout_s", "max_loop_lag_s"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} must be more than 0, not {getattr(self, name)}.")


def _check_range(name: str, low: float, high: float) -> None:
    if not 0 < low <= high:
        raise ConfigError(f"min_{name} {low} and max_{name} {high} leave no value to choose.")
