"""What retained events are made of; the events themselves are in `streamer.events.schema`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "FutureLabels",
    "LabelScore",
    "LatencyMs",
    "ModelRef",
    "Note",
    "Surprise",
    "SurprisePeak",
    "Time",
    "TimeSpan",
    "Window",
    "Wire",
]

Note = Literal[
    "degraded_fps",
    "stale_window",
    "superseded",
    "extrapolated",
    "padded",
    "filled",
    "untrained",
    "prior_lost",
    "clock_skewed",
]
Time = Annotated[
    str,
    Field(description="RFC 3339, UTC, microseconds", json_schema_extra={"format": "date-time"}),
]


class Wire(BaseModel):
    """Closed to what is not known here, never changed, finite numbers only."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


# parts of an anticipation -----------------------------------------------------------------------
class Window(Wire):
    """What the model saw."""

    start: Time
    end: Time
    frames: int
    fps: float
    first_frame: int = Field(description="source picture number of the first frame")
    last_frame: int
    dropped: int = Field(description="pictures lost inside the window")
    filled: int = Field(default=0, description="frames that repeat their predecessor")


class LabelScore(Wire):
    id: int
    label: str
    score: float


class FutureLabels(Wire):
    """One horizon."""

    horizon_s: float = Field(description="end of the predicted tubelet, seconds after window.end")
    start: Time = Field(description="capture time of the first predicted frame")
    end: Time
    heads: dict[str, list[LabelScore]] = Field(default_factory=dict)
    drift: float = Field(description="L1 distance to the tubelet one step before it")


class Surprise(Wire):
    """How wrong the future published in event `predicted_by` was for this window."""

    value: float = Field(description="mean absolute error in the layer-normed latent space")
    z: float | None = Field(description="robust z-score; null while the baseline fills")
    baseline: float | None = Field(description="running median of value")
    horizon_s: float
    predicted_by: int
    episode: str | None = Field(
        default=None, description="the episode of surprise that this clip belongs to"
    )


class LatencyMs(Wire):
    """Durations on each process's own clock; `transfer` is the residual, so the parts sum."""

    decode: float
    assemble: float
    queue: float
    encode: float
    rollout: float
    probe: float
    transfer: float
    total: float = Field(description="time - capture_time")


class ModelRef(Wire):
    name: str
    fingerprint: str
    trained: bool = Field(description="false: random weights, the numbers mean nothing")


# parts of an episode of surprise ----------------------------------------------------------------
class TimeSpan(Wire):
    start: Time
    end: Time


class SurprisePeak(Wire):
    """The most surprising clip of an episode so far."""

    value: float
    z: float
    seq: int = Field(description="its anticipation")
    capture_time: Time = Field(description="UTC capture of its newest frame")
    horizon_s: float
    predicted_by: int
