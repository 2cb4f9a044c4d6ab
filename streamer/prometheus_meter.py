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

    Args:
        max_streams: streams that have series here. One more, and the one that was counted for the
            longest time ago is forgotten, whether or not anybody ever looks.
    """

    def __init__(self, *, max_streams: int = 10_000) -> None:
        # The library would add a second series with the birth time to every one of ours; it can
        # only be told so for the whole process.
        _disable_created()  # type: ignore[no-untyped-call]  # unannotated there
        self._registry = CollectorRegistry()
        self._made = {name: self._make(metric) for name, metric in METRICS.items()}
        self._max_streams = max_streams
        self._streams: dict[str, None] = {}
        """The one that was counted for last is the last."""

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
        for stream in self._streams.keys() - set(streams):
            self._forget(stream)

    def exposition(self) -> bytes:
        """All numbers as `CONTENT_TYPE`."""
        return generate_latest(self._registry)

    def _series(self, metric: Metric, labels: dict[str, str]) -> Any:
        made = self._made[metric.name]
        if "stream" in labels:
            self._remember(labels["stream"])
        return made.labels(**labels) if labels else made

    def _remember(self, stream: str) -> None:
        self._streams.pop(stream, None)
        self._streams[stream] = None
        if len(self._streams) > self._max_streams:
            self._forget(next(iter(self._streams)))

    def _forget(self, stream: str) -> None:
        self._streams.pop(stream, None)
        for metric in METRICS.values():
            if "stream" in metric.labels:
                self._made[metric.name].remove_by_labels({"stream": stream})

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
