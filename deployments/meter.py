"""`streamer.telemetry.Meter` on Ray's metrics, which every node exports for Prometheus.

Serve adds ``application``, ``deployment`` and ``replica`` to the labels by itself.
"""

from __future__ import annotations

from typing import Any

from ray.serve import metrics as ray_metrics

from streamer.metrics import Metric, MetricKind, lookup

__all__ = ["OTHER_STREAMS", "RayMeter"]

OTHER_STREAMS = "..."
"""Label of all streams beyond the bound; no stream can be called so."""

# Ray annotates tag_keys as a tuple of exactly one string.
metrics: Any = ray_metrics


class RayMeter:
    """Makes each metric of the table at its first use.

    Ray keeps a series as long as its process lives, also of a stream that was deleted. So the
    number of streams with a label of their own is bounded: later ones are counted together.
    """

    def __init__(self, *, max_streams: int = 10_000) -> None:
        self._max_streams = max_streams
        self._made: dict[str, Any] = {}
        self._streams: set[str] = set()

    def add(self, name: str, value: float = 1.0, /, **labels: str) -> None:
        metric = self._metric(name, labels, kinds=("counter",))
        if value > 0:  # Ray refuses zero
            metric.inc(value, tags=self._bounded(labels))

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        metric = self._metric(name, labels, kinds=("gauge", "histogram"))
        if isinstance(metric, metrics.Gauge):
            metric.set(value, tags=self._bounded(labels))
        else:
            metric.observe(value, tags=self._bounded(labels))

    def _bounded(self, labels: dict[str, str]) -> dict[str, str]:
        stream = labels.get("stream")
        if stream is None or stream in self._streams:
            return labels
        if len(self._streams) < self._max_streams:
            self._streams.add(stream)
            return labels
        return labels | {"stream": OTHER_STREAMS}

    def _metric(self, name: str, labels: dict[str, str], *, kinds: tuple[MetricKind, ...]) -> Any:
        metric = lookup(name, labels, kinds=kinds)
        if name not in self._made:
            self._made[name] = _make(metric)
        return self._made[name]


def _make(metric: Metric) -> Any:
    tags = tuple(metric.labels)
    match metric.kind:
        case "counter":  # Ray appends _total itself
            return metrics.Counter(metric.name.removesuffix("_total"), metric.help, tags)
        case "gauge":
            return metrics.Gauge(metric.name, metric.help, tags)
        case "histogram":
            return metrics.Histogram(metric.name, metric.help, list(metric.buckets), tags)
