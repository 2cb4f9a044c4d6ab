"""How long the newest batches of a replica took, to be told with its presence."""

from __future__ import annotations

from collections import defaultdict, deque

from streamer.store.protocol import StageTime

__all__ = ["StageTimes"]

_NEWEST = 100
_METRIC = "streamer_stage_seconds"
_STAGES = ("encode", "rollout")


class StageTimes:
    """A `Meter` that keeps the newest times of encode and rollout, and nothing else.

    Not thread-safe: meters belong to the event loop.
    """

    def __init__(self, *, newest: int = _NEWEST) -> None:
        self._times: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=newest))

    def add(self, name: str, value: float = 1.0, /, **labels: str) -> None:
        pass

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        if name == _METRIC and labels["stage"] in _STAGES:
            self._times[labels["stage"]].append(value)

    def now(self) -> dict[str, StageTime]:
        """Stage -> its times; nothing of a stage before its first batch."""
        return {stage: _stage_time(sorted(times)) for stage, times in self._times.items()}


def _stage_time(times: list[float]) -> StageTime:
    return StageTime(
        batches=len(times), p50_ms=_quantile(times, 0.5) * 1e3, p95_ms=_quantile(times, 0.95) * 1e3
    )


def _quantile(ordered: list[float], share: float) -> float:
    """The smallest value that at least this share of them does not exceed."""
    return ordered[max(0, -(-round(share * 1000) * len(ordered) // 1000) - 1)]
