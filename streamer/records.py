"""The nouns that travel. Frozen, keyword-only, no behaviour beyond properties.

Arrays inside records are read-only by convention. ``*_ns`` with a wall meaning are UTC nanoseconds
since 1970; ``arrived_ns`` is on the monotonic clock of the process that made it.
What we publish (the anticipation) has one definition, `streamer.events.schema.Anticipation`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "AnticipationReply",
    "AnticipationRequest",
    "CaptureClock",
    "Clip",
    "ClockReading",
    "ClockWhy",
    "Encoded",
    "Episode",
    "Frame",
    "Future",
    "Latent",
    "ModelInfo",
    "Outcome",
    "Peak",
    "Picture",
    "Pixels",
    "Prior",
    "RolloutMode",
    "Sampling",
    "SourceState",
    "StreamRecord",
    "StreamSpec",
    "SurpriseState",
]

Pixels = NDArray[np.uint8]
CaptureClock = Literal["rtcp", "media", "arrival", "file"]
ClockWhy = Literal["ok", "no_reports", "skewed", "jumped", "no_pts", "repeated_pts"]
RolloutMode = Literal["contiguous", "gap"]
Outcome = Literal["", "ended", "failed", "quarantined"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A decoded, not yet converted picture, as a source pushes it."""

    image: Any
    """`av.VideoFrame`, or uint8 `[H, W, 3]` RGB from a synthetic source. Never buffered."""
    pts_s: float | None
    """Presentation time on the source's own clock, seconds; None when the source gave none."""
    captured_at_ns: int
    """UTC capture time, as good as `clock` says."""
    arrived_ns: int
    """Monotonic time at which the decoder handed it out."""
    clock: CaptureClock
    generation: int
    """One per connection or timeline; a clip never mixes two of them unmarked."""
    index: int
    """Number of this picture in its source, from 0, never reset by a reconnect."""
    decode_ms: float = 0.0
    """Time spent in the decoder for this picture."""
    is_past: bool = False
    """Played at once from before the source began: it fills the first clip and misses nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockReading:
    """How a source's clocks stood at its newest picture. Counts are of one connection."""

    clock: CaptureClock
    """Behind the capture time of that picture."""
    is_believed: bool = False
    """That is the source's own wall clock."""
    why: ClockWhy = "no_reports"
    """`ok`; `no_reports`: the camera says nothing of its wall clock (any more); `skewed`: it is too
    far from ours; `jumped`: it, or the presentation times, moved a moment ago and that is not
    confirmed yet; `no_pts`, `repeated_pts`: the picture has no time of its own."""
    offset_s: float | None = None
    """The source's wall clock minus ours when the least delayed picture arrived, seconds: 0 is
    right, positive is fast. It contains the network's delay. None while it is not known."""
    drift_ppm: float | None = None
    """How fast the source's media clock runs against ours; None until it could be measured."""
    reports: int = 0
    """RTCP sender reports that could be told apart."""
    report_age_s: float | None = None
    """Since the newest of them, seconds."""
    outliers: int = 0
    """Reports and pictures with a time that was ignored because the next ones did not agree."""
    jumps: int = 0
    """Times the wall clock or the presentation times were set anew."""
    missing_pts: int = 0
    """Pictures without a presentation time."""
    repeated_pts: int = 0
    """Pictures with that of the picture before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One sampled and converted picture."""

    stream: str
    index: int
    """`Picture.index` of what it shows: gaps are sampled-out pictures."""
    tick: int
    """Position on the sampling grid (`1 / fps` seconds each), from 0 in each generation."""
    pts_s: float
    captured_at_ns: int
    arrived_ns: int
    clock: CaptureClock
    generation: int
    filled: bool
    """True when it repeats the frame before it to bridge a hole."""
    pixels: Pixels
    """uint8 `[crop, crop, 3]` RGB."""
    decode_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Clip:
    """T frames in a row on the sampling grid: what the encoder sees."""

    stream: str
    index: int
    """From 0, +1 per clip made in this session (also for those never encoded)."""
    frames: Pixels
    """uint8 `[T, crop, crop, 3]` RGB."""
    start_ns: int
    end_ns: int
    """UTC capture of the first and the last frame."""
    fps: float
    first_frame: int
    last_frame: int
    """Source picture numbers of the first and last frame."""
    last_tick: int
    dropped: int
    """Pictures or ticks lost inside the window (overflow, supersession), not sampled out."""
    filled: int
    """Frames in it that repeat their predecessor to bridge a hole."""
    padded: int = 0
    """Copies of the first frame put in front because the file was shorter than a clip."""
    clock: CaptureClock
    generation: int
    arrived_ns: int
    """Monotonic arrival of the newest picture."""
    decode_ms: float = 0.0
    assemble_ms: float = 0.0
    """From the newest picture's arrival to this clip."""
    degraded_fps: bool = False
    """The source delivers fewer frames per second than the sampling grid asks for."""
    clock_skewed: bool = False
    """The camera's wall clock is too far from ours to be believed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Encoder output of one clip."""

    stream: str
    clip: int
    tokens: Any
    """`[N, D]`, token order time-major (S, h, w): a torch tensor inside a process."""
    normed: bool
    """True after the affine-free layer norm (eps 1e-5) in which predictions live."""
    grid: tuple[int, int, int]
    """(S, h, w): tubelets in time, rows, columns; N = S*h*w."""
    model: str
    """Model fingerprint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Future:
    """Predicted latent of one step."""

    step: int
    """k = 1, 2, ... in contiguous mode."""
    horizon_s: float
    """End of the predicted tubelet, seconds after the last frame used."""
    tokens: Any
    """`[n, D]` of that step only, in the layer-normed space, predictor output as it is."""
    is_extrapolated: bool = False
    """A position beyond the trained ones was used, by the predictor or before it by the encoder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How pictures become clips."""

    frames: int = 64
    """Per clip."""
    fps: float = 4.0
    """Frames picked from a source, per second."""
    stride_s: float = 1.0
    """Between the beginnings of two clips, seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSpec:
    """What a user asked for, validated and with every default filled in."""

    source: str = field(repr=False)
    """URL with credentials; show it only through `streamer.sources.redact`."""
    model: str = ""
    """Name of a served model."""
    mode: RolloutMode = "contiguous"
    horizons_s: tuple[float, ...] = (0.5, 1.0, 2.0)
    """Rounded up to whole steps."""
    sampling: Sampling = field(default_factory=Sampling)
    retain_s: float = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRecord:
    """A registered stream: what is wanted of it."""

    stream: str
    spec: StreamSpec
    desired: Literal["live", "paused"] = "live"
    outcome: Outcome = ""
    """Set when a stream is over for good (file read to its end, camera given up), or quarantined
    for a while: the supervisor leaves it alone until somebody sets `desired` again."""
    revision: int = 1
    """+1 on each change."""
    created_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """What a source or session says of itself. Becomes the `stream.state` event."""

    state: Literal["starting", "live", "stalled", "reconnecting", "paused", "ended", "failed"]
    reason: str = ""
    """Short code: `opening`, `filling`, `eof`, `refused`, `unauthorized`, `no_video`, ..."""
    detail: str = ""
    """One redacted sentence for people."""
    retry_in_s: float | None = None
    have: int | None = None
    need: int | None = None
    """With reason `filling`: frames collected and needed for the first clip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """What a gateway must know of a served model to accept and explain streams."""

    name: str
    fingerprint: str
    trained: bool
    crop: int
    """Pixels per side."""
    tubelet: int
    patch: int
    trained_frames: int
    """Frames per clip it was built for."""
    dtype: str
    config: dict[str, Any] = field(default_factory=dict)
    """`config.json` as loaded."""
    heads: dict[str, dict[int, str]] = field(default_factory=dict)
    """Label head -> id -> label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """The most surprising clip of an episode."""

    value: float
    z: float
    seq: int
    """The event of that clip; 0 while it has none yet."""
    captured_ns: int
    """UTC capture of the newest frame."""
    horizon_s: float
    predicted_by: int
    """The event whose future was that wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """A stretch of clips in a row that surprise, as it stands while it lasts."""

    id: str
    """Of its own, whichever log it is told in."""
    generation: int
    start_ns: int
    last_ns: int
    """UTC capture of the newest frame of its first and of its newest clip."""
    peak: Peak
    calm: int = 0
    """Clips in a row at its end that do not surprise any more."""
    untold: int = 0
    """Clips since the last event about it."""
    told_z: float
    """Peak that the last event told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SurpriseState:
    """Running robust baseline of a stream's surprise; travels with the clip, < 1 kB."""

    history: tuple[float, ...] = ()
    """Newest last; nothing of an episode."""
    episode: Episode | None = None
    """The one that is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """The futures that an earlier event published, kept to measure the next clip's surprise."""

    seq: int
    """The event that published them."""
    model: str = ""
    """Fingerprint of the model that made them: futures of another one mean nothing here."""
    generation: int
    last_tick: int
    horizons_s: tuple[float, ...]
    tokens: Any
    """`[K, n, D]`, one row per horizon: tensor in one process, `[ObjectRef]` under Ray."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """What the encoder side hands to the rollout side, through the session but not into it."""

    latent: Any
    """`Latent` in one process, `[ObjectRef]` under Ray."""
    queue_ms: float
    encode_ms: float
    shares_device: bool = False
    """Its rollout will run where it was made: the next clip cannot be encoded meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnticipationRequest:
    """What the rollout side needs to make one event of one latent: the clip without its pixels."""

    stream: str
    lease: str
    """Token of the session's lease; the store refuses an append with a stale one."""
    mode: RolloutMode
    horizons_s: tuple[float, ...]
    clip: int
    start_ns: int
    end_ns: int
    frames: int
    fps: float
    first_frame: int
    last_frame: int
    last_tick: int
    dropped: int
    filled: int
    padded: int
    clock: CaptureClock
    generation: int
    notes: tuple[str, ...] = ()
    decode_ms: float
    assemble_ms: float
    surprise: SurpriseState = field(default_factory=SurpriseState)
    prior: Prior | None = None
    number: int | None = None
    """None: the event is appended to the stream's log, which numbers it. Else it gets this number,
    is appended nowhere, and comes back in the reply: for callers without a stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnticipationReply:
    """What comes back to the session: small, the futures by reference."""

    seq: int
    prior: Prior | None
    surprise: SurpriseState
    is_superseded: bool = False
    """A newer clip was ready before all horizons were: the later ones are missing."""
    body: bytes | None = None
    """The event as JSON without ``id`` and ``seq``, when it was appended nowhere."""
    episode_body: bytes | None = None
    """What is to be told of an episode with it, likewise."""
