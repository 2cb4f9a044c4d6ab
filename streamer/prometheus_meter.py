"""A `Meter` that keeps the numbers and writes them the way Prometheus reads them."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client import disable_created_metrics as _disable_created
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from streamer.metrics import METRICS, Metric, lookup

__all__ = ["CONTENT_TYPE", "PrometheusMeter"]

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4


class PrometheusMeter:
    """All metrics of the table. Not thread-safe: it belongs to the event loop.

    Counters whose labels have known values begin at 0, so that the first increase shows as one.
    """

    def __init__(self) -> None:
        # The library would add a second series with the birth time to every one of ours; it can
        # only be told so for the whole process.
        _disable_created()  # type: ignore[no-untyped-call]  # unannotated there
        self._registry = CollectorRegistry()
        self._made = {name: self._make(metric) for name, metric in METRICS.items()}
        self._streams: set[str] = set()

    def add(self, name: str, value: float = 1.0, /, **labels: str) -> None:
        metric = lookup(name, labels, kinds=("counter",))
        self._series(metric, labels).inc(value)

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        metric = lookup(name, labels, kinds=("gauge", "histogram"))
        series = self._series(metric, labels)
        if metric.kind == "gauge":
            series.set(value)
        else:
            series.observe(value)

    def keep_streams(self, streams: Collection[str]) -> None:
        """Forget the series of all other streams, which would otherwise stay for ever."""
        for stream in self._streams - set(streams):
            self._streams.discard(stream)
            for metric in METRICS.values():
                if "stream" in metric.labels:
                    self._made[metric.name].remove_by_labels({"stream": stream})

    def exposition(self) -> bytes:
        """All numbers as `CONTENT_TYPE`."""
        return generate_latest(self._registry)

    def _series(self, metric: Metric, labels: dict[str, str]) -> Any:
        made = self._made[metric.name]
        if "stream" in labels:
            self._streams.add(labels["stream"])
        return made.labels(**labels) if labels else made

    def _make(self, metric: Metric) -> Any:
        names = list(metric.labels)
        made: Counter | Gauge | Histogram
        match metric.kind:
            case "counter":
                made = Counter(metric.name, metric.help, names, registry=self._registry)
            case "gauge":
                made = Gauge(metric.name, metric.help, names, registry=self._registry)
            case "histogram":
                made = Histogram(
                    metric.name, metric.help, names, registry=self._registry, buckets=metric.buckets
                )
        if names and metric.kind == "counter":
            for values in itertools.product(*(values or () for values in metric.labels.values())):
                made.labels(*values)
        return made
