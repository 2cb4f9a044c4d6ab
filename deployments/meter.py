"""`streamer.telemetry.Meter` on Ray's metrics, which every node exports for Prometheus.

Serve adds ``application``, ``deployment`` and ``replica`` to the labels by itself.
"""

from __future__ import annotations

from typing import Any

from ray.serve import metrics as ray_metrics

from streamer.metrics import Metric, MetricKind, lookup

__all__ = ["RayMeter"]

# Ray annotates tag_keys as a tuple of exactly one string.
metrics: Any = ray_metrics


class RayMeter:
    """Makes each metric of the table at its first use."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def add(self, name: str, value: float = 1.0, /, **labels: str) -> None:
        metric = self._metric(name, labels, kinds=("counter",))
        if value > 0:  # Ray refuses zero
            metric.inc(value, tags=labels)

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        metric = self._metric(name, labels, kinds=("gauge", "histogram"))
        if isinstance(metric, metrics.Gauge):
            metric.set(value, tags=labels)
        else:
            metric.observe(value, tags=labels)

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
