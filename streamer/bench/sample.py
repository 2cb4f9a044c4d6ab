"""One look at a service under load: what it uses, how old its events are, what it threw away."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from streamer.bench.processes import Usage, tree_usage
from streamer.bench.trend import quantile
from streamer.clock import monotonic_ns

__all__ = ["Drops", "Gauge", "Sample", "drops_of"]

_MB = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Drops:
    """Totals over the streams, by the valve that let go."""

    pictures: int = 0
    """Lost before they were looked at."""
    superseded: int = 0
    """Clips that a newer one replaced."""
    rejected: int = 0
    """Clips that the models had no room for."""

    @property
    def total(self) -> int:
        return self.pictures + self.superseded + self.rejected


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One row. What cannot be known of a foreign service is None."""

    at_s: float
    """Since the run began."""
    memory_mb: float | None
    """Heap and stacks of all processes of the service: what a leak is in."""
    pss_mb: float | None
    """All their memory, libraries too; what they share counted once."""
    rss_mb: float | None
    processes: int | None
    threads: int | None
    fds: int | None
    cpu_cores: float | None
    """Processor time since the row before, per second."""
    object_store_mb: float | None
    """Of Ray."""
    events: int
    """Anticipations since the row before, of all streams."""
    age_p50_s: float | None
    """Receipt minus capture of those; None without any."""
    age_p95_s: float | None
    age_max_s: float | None
    lag_s: float | None
    """The largest that the service says of a stream."""
    fps_in: float | None
    """The smallest that the service says of a stream."""
    drops: Drops

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class Gauge:
    """Makes the rows.

    Args:
        pid: the service's first process; None for one elsewhere.
        object_store: bytes in Ray's object store; None without Ray.
    """

    def __init__(self, *, pid: int | None, object_store: Callable[[], int] | None = None) -> None:
        self._pid = pid
        self._object_store = object_store
        self._began_ns = self._last_ns = monotonic_ns()
        self._last_cpu_s: float | None = None

    def read(self, *, ages: Sequence[float], views: Sequence[dict[str, Any]]) -> Sample:
        """One row. Blocks for milliseconds per process.

        Args:
            ages: of the events since the last row, seconds.
            views: the streams as `GET /v1/streams/{stream}` shows them.
        """
        usage = None if self._pid is None else tree_usage(self._pid)
        stored = None if self._object_store is None else self._object_store() / _MB
        now_ns = monotonic_ns()
        cores = self._cores(usage, now_ns=now_ns)
        self._last_ns = now_ns
        return Sample(
            at_s=round((now_ns - self._began_ns) / 1e9, 2),
            memory_mb=None if usage is None else usage.own_bytes / _MB,
            pss_mb=None if usage is None else usage.pss_bytes / _MB,
            rss_mb=None if usage is None else usage.rss_bytes / _MB,
            processes=None if usage is None else usage.processes,
            threads=None if usage is None else usage.threads,
            fds=None if usage is None else usage.fds,
            cpu_cores=cores,
            object_store_mb=stored,
            events=len(ages),
            age_p50_s=quantile(ages, 0.5) if ages else None,
            age_p95_s=quantile(ages, 0.95) if ages else None,
            age_max_s=max(ages) if ages else None,
            lag_s=max(_numbers(views, "lag_s"), default=None),
            fps_in=min(_numbers((v.get("rates") or {} for v in views), "fps_in"), default=None),
            drops=drops_of(views),
        )

    def _cores(self, usage: Usage | None, *, now_ns: int) -> float | None:
        if usage is None:
            return None
        before, self._last_cpu_s = self._last_cpu_s, usage.cpu_s
        spent_s = (now_ns - self._last_ns) / 1e9
        if before is None or spent_s <= 0:
            return None
        return max(0.0, usage.cpu_s - before) / spent_s


def drops_of(views: Iterable[dict[str, Any]]) -> Drops:
    """Added up over streams."""
    told = [view.get("drops") or {} for view in views]
    return Drops(
        pictures=sum(drops.get("dropped", 0) for drops in told),
        superseded=sum(drops.get("clips_superseded", 0) for drops in told),
        rejected=sum(drops.get("clips_rejected", 0) for drops in told),
    )


def _numbers(rows: Iterable[dict[str, Any]], name: str) -> list[float]:
    return [float(row[name]) for row in rows if row.get(name) is not None]
