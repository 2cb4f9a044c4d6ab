"""Live streams for a long time, one reader that keeps up, one that does not: what grows?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from streamer.bench.config import SoakConfig
from streamer.bench.readers import FeedReader
from streamer.bench.sample import Gauge, Sample
from streamer.bench.tally import Tally
from streamer.bench.verdict import Verdict, judge
from streamer.clock import monotonic_ns
from streamer.errors import CapacityError, ConfigError

__all__ = ["Place", "SoakReport", "run_soak"]

_CALL_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the service is."""

    url: str
    headers: Mapping[str, str]
    pid: int | None = None
    """Its first process; None when it is not ours to look into."""
    ended: Callable[[], str] = lambda: ""
    """Why it ended by itself; empty while it runs."""
    object_store: Callable[[], int] | None = None
    """Bytes in Ray's object store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakReport:
    """What came of it."""

    config: SoakConfig
    is_partial: bool
    """It was ended early, so it says less."""
    seconds: float
    samples: list[Sample]
    verdicts: list[Verdict]

    @property
    def ok(self) -> bool:
        return all(verdict.ok is not False for verdict in self.verdicts)


async def run_soak(
    config: SoakConfig,
    place: Place,
    *,
    name: str,
    stop: asyncio.Event,
    on_sample: Callable[[Sample], None],
) -> SoakReport:
    """Register the streams, read, look, judge; the streams are removed again.

    Args:
        name: the streams are called ``<name>-0`` and so on.
        stop: ends it early.
        on_sample: called after each look.

    Cancellation leaves the streams behind.

    Raises:
        CapacityError: the service does not answer, or has no room.
        ConfigError: it refuses the streams.
    """
    streams = [f"{name}-{number}" for number in range(config.streams)]
    headers = dict(place.headers)
    async with httpx2.AsyncClient(
        base_url=place.url, headers=headers, timeout=_CALL_S, trust_env=False
    ) as http:
        for stream in streams:
            await _add(http, stream, config)
        readers = [FeedReader(place.url, stream, headers=headers) for stream in streams]
        slow = FeedReader(place.url, streams[0], headers=headers, pause_s=config.slow_read_s)
        watch = _Watch(http, place, streams, [reader.tally for reader in readers])
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(reader.run()) for reader in (*readers, slow)]
            await watch.run(config, stop=stop, on_sample=on_sample)
            for task in tasks:
                task.cancel()
        if not watch.death:
            for stream in streams:
                await http.delete(f"/v1/streams/{stream}")
    verdicts = judge(
        watch.samples,
        readers=[reader.tally for reader in readers],
        slow=slow.tally,
        config=config,
        is_ours=place.pid is not None,
        death=watch.death,
    )
    return SoakReport(
        config=config,
        is_partial=stop.is_set(),
        seconds=watch.seconds,
        samples=watch.samples,
        verdicts=verdicts,
    )


class _Watch:
    """Looks at the service until the time is over, somebody stops it, or the service ends."""

    def __init__(
        self, http: httpx2.AsyncClient, place: Place, streams: list[str], tallies: list[Tally]
    ) -> None:
        self.samples: list[Sample] = []
        self.death = ""
        self.seconds = 0.0
        self._http = http
        self._place = place
        self._streams = streams
        self._tallies = tallies
        self._gauge = Gauge(pid=place.pid, object_store=place.object_store)

    async def run(
        self, config: SoakConfig, *, stop: asyncio.Event, on_sample: Callable[[Sample], None]
    ) -> None:
        began_ns = monotonic_ns()
        while self.seconds < config.seconds and not stop.is_set():
            left_s = config.seconds - self.seconds
            await _until(stop, timeout_s=min(config.sample_s, left_s))
            self.seconds = (monotonic_ns() - began_ns) / 1e9
            if death := self._place.ended():
                self.death = death
                return
            sample = await self._look()
            self.samples.append(sample)
            on_sample(sample)

    async def _look(self) -> Sample:
        views = [view for stream in self._streams if (view := await self._view(stream))]
        ages = [age for tally in self._tallies for age in tally.take_ages()]
        return await asyncio.to_thread(self._gauge.read, ages=ages, views=views)

    async def _view(self, stream: str) -> dict[str, Any] | None:
        """The stream as the service shows it; None when it does not."""
        try:
            answer = await self._http.get(f"/v1/streams/{stream}")
        except httpx2.TransportError:
            return None
        view: dict[str, Any] | None = answer.json() if answer.is_success else None
        return view


async def _add(http: httpx2.AsyncClient, stream: str, config: SoakConfig) -> None:
    body = {
        "id": stream,
        "source": config.source,
        "horizons_s": list(config.horizons_s),
        "sampling": {"stride_s": config.stride_s},
        "retain_s": config.retain_s,
    }
    try:
        answer = await http.post("/v1/streams", json=body)
    except httpx2.TransportError as error:
        raise CapacityError(f"No answer from {http.base_url} ({error}).") from error
    if answer.is_error:
        refusal = CapacityError if answer.is_server_error else ConfigError
        raise refusal(f"The service refuses the stream. {_detail(answer)}")


def _detail(answer: httpx2.Response) -> str:
    """What a problem document says; the beginning of whatever else came."""
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return f"{answer.status_code} {answer.text[:200]}"


async def _until(event: asyncio.Event, *, timeout_s: float) -> None:
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return
