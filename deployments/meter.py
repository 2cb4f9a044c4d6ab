"""`streamer.telemetry.Meter` on Ray's metrics, which every node exports for Prometheus.

Serve adds ``application``, ``deployment`` and ``replica`` to the labels by itself.
"""

from __future__ import annotations

from typing import Any

from ray.serve import metrics as ray_metrics

__all__ = ["RayMeter"]

# 5 ms to 30 s: from a batch of a small model on a GPU to a clip of a large one on a CPU.
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64)

# Ray annotates tag_keys as a tuple of exactly one string.
metrics: Any = ray_metrics


class RayMeter:
    """Makes each metric at its first use; the label names of that use are its label names."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def add(self, name: str, value: float = 1.0, /, **labels: str) -> None:
        # Ray appends _total to what it exports as a counter.
        metric = self._made.get(name) or self._make(
            name, metrics.Counter(name.removesuffix("_total"), tag_keys=tuple(labels))
        )
        if value > 0:  # Ray refuses zero
            metric.inc(value, tags=labels)

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        metric = self._made.get(name) or self._make(name, _observer(name, tuple(labels)))
        if isinstance(metric, metrics.Gauge):
            metric.set(value, tags=labels)
        else:
            metric.observe(value, tags=labels)

    def _make(self, name: str, metric: Any) -> Any:
        self._made[name] = metric
        return metric


def _observer(name: str, labels: tuple[str, ...]) -> Any:
    if name.endswith("_seconds"):
        return metrics.Histogram(name, boundaries=list(_SECONDS), tag_keys=labels)
    if name.endswith("_size"):
        return metrics.Histogram(name, boundaries=list(_SIZES), tag_keys=labels)
    return metrics.Gauge(name, tag_keys=labels)
