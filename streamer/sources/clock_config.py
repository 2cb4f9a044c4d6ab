"""What is believed of a camera's clocks. Imports no library, so that settings can build it."""

from __future__ import annotations

from dataclasses import dataclass

from streamer.errors import ConfigError

__all__ = ["CaptureClockConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureClockConfig:
    """How far a camera's clocks may go before they are not believed. Seconds unless named."""

    max_skew_s: float = 2.0
    """A camera whose wall clock is further from ours than this is not believed, and that is told
    (`clock_skewed`). It is believed again within three quarters of it. At most `max_age_s`."""
    max_age_s: float = 10.0
    """Pictures do not take longer than this to come. One that seems to is a stray; several in a row
    that agree mean that the camera's media clock jumped."""
    strays_for_jump: int = 3
    """So many pictures in a row that agree on another time mean that the media clock jumped."""
    median_packets: int = 5
    """Packets over which what the camera says of its wall clock is a median: the parser sometimes
    attaches the word of the next packet."""
    jump_s: float = 0.1
    """A sender report that moves the camera's wall clock by more than this waits for a second one
    that agrees; until then the one before holds."""
    confirm_s: float = 15.0
    """A sender report that moved the clock by more than `jump_s` is believed without a second one
    when none has disagreed for this time."""
    window_s: float = 30.0
    """Without the camera's wall clock, pictures are as late as they are later than the least late
    one in the last one to two of these windows."""
    drift_window_s: float = 10.0
    """The drift is the slope through the smallest delays of windows of this length: known after
    12 of them, over the newest 64."""
    max_drift_error_s: float = 0.1
    """After the last sender report the camera's wall clock is believed until its drift could have
    made this much of it (200 ppm while the drift is not known)."""

    def __post_init__(self) -> None:
        for name in ("median_packets", "strays_for_jump"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be 1 or more.")
        for name in (
            "max_skew_s",
            "max_age_s",
            "jump_s",
            "confirm_s",
            "window_s",
            "drift_window_s",
            "max_drift_error_s",
        ):
            if not 0 < getattr(self, name) <= 1e6:
                raise ConfigError(f"{name} is {getattr(self, name)}; it lies above 0, up to 1e6.")
        if self.max_skew_s > self.max_age_s:
            raise ConfigError(
                f"max_skew_s is {self.max_skew_s}; it must be at most max_age_s ({self.max_age_s})."
            )
