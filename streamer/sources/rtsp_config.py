"""Times and limits of RTSP cameras. Imports no library, so that settings can build it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from streamer.backoff import Backoff
from streamer.errors import ConfigError
from streamer.sources.clock_config import CaptureClockConfig

__all__ = ["RtspConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RtspConfig:
    """How patient a source is with its camera. Seconds unless the name says otherwise."""

    open_timeout_s: float = 5.0
    """Longest wait for the camera's answers while connecting."""
    read_timeout_s: float = 4.0
    """No packet for this long ends the connection. It is also the longest time for which a stop
    request can wait, and the slowest camera that works sends one frame in this time."""
    first_frame_s: float = 15.0
    """Longest wait from the connection to the first picture, that is to a key frame."""
    stall_s: float = 2.0
    """`stalled` is told when no picture came for this long (or five frame periods, if longer);
    the reader still waits."""
    bad_window_s: float = 5.0
    """A connection whose pictures are mostly broken for this long is dropped."""
    bad_fraction: float = 0.5
    """Part of the pictures that may be broken, between 0 and 1; see `bad_window_s`."""
    settled_s: float = 30.0
    """After so much live time in a row the failures before are forgotten."""
    max_pixels: int = 3840 * 2160
    """Largest picture, width times height; larger ones are refused before they are decoded."""
    tls_ca_file: str = ""
    """PEM file with the authorities that must have signed the certificates of rtsps cameras.
    Empty: any certificate is taken, which keeps listeners out but not impostors; most cameras
    sign their own."""
    transport: Literal["auto", "tcp", "udp"] = "auto"
    """How pictures come. `auto`: by TCP, and by UDP after several connections without usable
    pictures (and back again). rtsps cameras always send by TCP, which is what is encrypted."""
    switch_after: int = 3
    """With `auto`: so many connections without usable pictures, and the other way is tried; 1 or
    more."""
    unavailable: Backoff = field(default_factory=Backoff)
    """After refusals, lost connections, stalls: what comes back by itself."""
    unusable: Backoff = field(
        default_factory=lambda: Backoff(first_s=60, factor=1, cap_s=60, jitter=0)
    )
    """After wrong path, no video, unknown codec: somebody has to change the camera."""
    denied: Backoff = field(
        default_factory=lambda: Backoff(first_s=300, factor=1, cap_s=300, jitter=0, max_tries=3)
    )
    """After refused credentials: few and far between, since cameras lock accounts."""
    clock: CaptureClockConfig = field(default_factory=CaptureClockConfig)
    """What is believed of the camera's clocks."""

    def __post_init__(self) -> None:
        for name in (
            "open_timeout_s",
            "read_timeout_s",
            "first_frame_s",
            "stall_s",
            "bad_window_s",
            "settled_s",
            "max_pixels",
        ):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be above 0.")
        if self.transport not in ("auto", "tcp", "udp"):
            raise ConfigError(f"transport is {self.transport!r}; write auto, tcp or udp.")
        if self.switch_after < 1:
            raise ConfigError(f"switch_after is {self.switch_after}; it must be 1 or more.")
        if not 0 < self.bad_fraction < 1:
            raise ConfigError(f"bad_fraction is {self.bad_fraction}; it must be in (0, 1).")
