"""Every metric there is: name, kind, labels, unit, buckets, help. The one place to read or change.

A `Meter` looks each name up here, so a spelling error, a forgotten label or a value that no
dashboard knows fails in the first test that comes by. Labels are bounded: by a list of values or,
for `stream`, by the number of registered streams.

Names are ``streamer_<noun>_<what>_<unit>`` in base units, counters end in ``_total``. What Ray
exports of its replicas has ``ray_`` in front and labels of its own behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, get_args, get_type_hints

from streamer.records import SourceState

__all__ = ["ALL_STATES", "METRICS", "Metric", "MetricKind", "Since", "lookup"]

MetricKind = Literal["counter", "gauge", "histogram"]
Since = Literal["start", "stream"]
"""When the first sample is there: from the start of its process, or once a stream is watched."""

ALL_STATES: tuple[str, ...] = get_args(get_type_hints(SourceState)["state"])
"""Of a source, as `SourceState` has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric."""

    name: str
    kind: MetricKind
    help: str
    unit: str
    """`seconds`, `frames`, ...; `1` for a bare number."""
    since: Since
    labels: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    """Label -> its possible values; None: streams."""
    buckets: tuple[float, ...] = ()
    """Upper bounds, of a histogram."""

    def check(self, labels: Mapping[str, str]) -> None:
        """Raises `ValueError` unless these are exactly the labels, with known values."""
        if labels.keys() != self.labels.keys():
            raise ValueError(
                f"{self.name} has the labels {sorted(self.labels)}, not {sorted(labels)}"
            )
        for name, value in labels.items():
            values = self.labels[name]
            if values is not None and value not in values:
                raise ValueError(f"{self.name}: {name} is one of {values}, not {value!r}")


# From one decoded frame to a clip of a large model on a CPU.
_STAGE_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_AGE_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)

_TABLE = (
    Metric(
        name="streamer_frames_total",
        kind="counter",
        help="Decoded pictures, by what became of them.",
        unit="frames",
        since="stream",
        labels={"stream": None, "fate": ("used", "sampled_out", "dropped")},
    ),
    Metric(
        name="streamer_clips_total",
        kind="counter",
        help="Clips: published, left for a newer one, or refused because the models had no room.",
        unit="clips",
        since="stream",
        labels={"stream": None, "fate": ("published", "superseded", "rejected")},
    ),
    Metric(
        name="streamer_rollouts_superseded_total",
        kind="counter",
        help="Published clips whose later horizons are missing, because a newer clip was ready.",
        unit="clips",
        since="stream",
        labels={"stream": None},
    ),
    Metric(
        name="streamer_source_state",
        kind="gauge",
        help="1 for the state that a registered stream is in, 0 for the others.",
        unit="1",
        since="stream",
        labels={"stream": None, "state": ALL_STATES},
    ),
    Metric(
        name="streamer_source_reconnects_total",
        kind="counter",
        help="Times a source was lost, or not there at first, and had to be connected again.",
        unit="reconnects",
        since="stream",
        labels={"stream": None},
    ),
    Metric(
        name="streamer_source_clock_offset_seconds",
        kind="gauge",
        help="Source's wall clock minus ours, the network's delay included.",
        unit="seconds",
        since="stream",
        labels={"stream": None},
    ),
    Metric(
        name="streamer_source_clock_drift_ratio",
        kind="gauge",
        help="How much faster the source's media clock runs than ours; 0.0001 is 100 ppm.",
        unit="1",
        since="stream",
        labels={"stream": None},
    ),
    Metric(
        name="streamer_stage_seconds",
        kind="histogram",
        help="Time in one stage; encode and rollout per batch, the others per clip.",
        unit="seconds",
        since="stream",
        labels={"stage": ("decode", "assemble", "queue", "encode", "rollout", "publish")},
        buckets=_STAGE_S,
    ),
    Metric(
        name="streamer_capture_to_event_seconds",
        kind="histogram",
        help="Capture of a clip's last frame to its published event; live sources only.",
        unit="seconds",
        since="stream",
        labels={"stream": None},
        buckets=_AGE_S,
    ),
    Metric(
        name="streamer_clip_staleness_seconds",
        kind="histogram",
        help="Arrival of a clip's last frame here to its published event.",
        unit="seconds",
        since="stream",
        labels={"stream": None},
        buckets=_AGE_S,
    ),
    Metric(
        name="streamer_batch_size",
        kind="histogram",
        help="Items computed together.",
        unit="items",
        since="start",
        labels={"stage": ("encode", "rollout")},
        buckets=_SIZES,
    ),
    Metric(
        name="streamer_refused_total",
        kind="counter",
        help="Items that a full queue in front of the models refused.",
        unit="items",
        since="start",
        labels={"stage": ("encode", "rollout"), "reason": ("queue_full",)},
    ),
    Metric(
        name="streamer_surprise",
        kind="gauge",
        help="Newest distance between what was foretold and what came.",
        unit="1",
        since="stream",
        labels={"stream": None},
    ),
    Metric(
        name="streamer_pictures_total",
        kind="counter",
        help="Snapshots and latent pictures: kept, left out for want of room, or not kept.",
        unit="pictures",
        since="stream",
        labels={"kind": ("snapshot", "latent"), "fate": ("stored", "dropped", "failed")},
    ),
    Metric(
        name="streamer_surprise_episodes_total",
        kind="counter",
        help="Episodes of surprise that began.",
        unit="episodes",
        since="stream",
        labels={"stream": None},
    ),
    Metric(
        name="streamer_surprise_episode_open",
        kind="gauge",
        help="1 while an episode of surprise is open, else 0.",
        unit="1",
        since="stream",
        labels={"stream": None},
    ),
    Metric(
        name="streamer_subscribers",
        kind="gauge",
        help="Feeds open at this gateway.",
        unit="subscribers",
        since="start",
    ),
    Metric(
        name="streamer_feed_gaps_total",
        kind="counter",
        help="Gap messages: a subscriber was told that events are missing, and why.",
        unit="messages",
        since="start",
        labels={"reason": ("slow_subscriber", "retention", "restart")},
    ),
    Metric(
        name="streamer_uploads_total",
        kind="counter",
        help="Uploaded files, by what was asked and how it ended; left: the caller went away.",
        unit="files",
        since="start",
        labels={
            "what": ("anticipations", "latents"),
            "outcome": ("done", "refused", "failed", "left"),
        },
    ),
    Metric(
        name="streamer_store_up",
        kind="gauge",
        help="1 when the store answered this scrape, 0 when it did not.",
        unit="1",
        since="start",
    ),
)

METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _TABLE})


def lookup(name: str, labels: Mapping[str, str], *, kinds: tuple[MetricKind, ...]) -> Metric:
    """The metric of this name, if it takes these labels.

    Raises:
        ValueError: no such metric of these kinds, or other labels; a programming error.
    """
    metric = METRICS.get(name)
    if metric is None:
        raise ValueError(f"{name} is not in streamer.metrics.METRICS")
    if metric.kind not in kinds:
        raise ValueError(f"{name} is a {metric.kind}, not a {' or '.join(kinds)}")
    metric.check(labels)
    return metric
