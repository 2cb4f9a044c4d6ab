"""A scrape of a running service holds to the table of metrics, name by name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import httpx2
import pytest
from prometheus_client import Metric as Family
from prometheus_client.parser import text_string_to_metric_families
from prometheus_text import read_samples

from streamer import __version__
from streamer.doctor.service import running_version
from streamer.metrics import METRICS
from streamer.records import Sampling
from streamer.runtime import serve_local
from streamer.settings import ModelConfig, ServerConfig, Settings
from streamer.sources.config import SyntheticConfig
from streamer.store.protocol import Store

pytestmark = pytest.mark.contract

SETTINGS = Settings(
    model=ModelConfig(threads=1),
    server=ServerConfig(port=0, drain_s=0.1),
    sampling=Sampling(frames=8, fps=8.0, stride_s=0.25),
    horizons_s=(0.25,),
    synthetic=SyntheticConfig(preroll_s=1.0),
)
STREAM = "cam"
WAIT_S = 30.0


@dataclass(frozen=True)
class Running:
    store: Store
    http: httpx2.AsyncClient

    async def scrape(self) -> str:
        answer = await self.http.get("/metrics")
        assert answer.status_code == 200, answer.text
        return answer.text

    async def scrape_until(self, fits: Callable[[str], bool]) -> str:
        async with asyncio.timeout(WAIT_S):
            while not fits(text := await self.scrape()):  # noqa: ASYNC110 - over HTTP
                await asyncio.sleep(0.05)
        return text


@pytest.fixture
async def service() -> AsyncIterator[Running]:
    stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()

    async def on_ready(store: Store, url: str) -> None:
        ready.set_result((store, url))

    async with asyncio.TaskGroup() as group:
        group.create_task(serve_local(SETTINGS, stop=stop, on_ready=on_ready))
        store, url = await asyncio.wait_for(ready, WAIT_S)
        try:
            async with httpx2.AsyncClient(base_url=url) as http:
                yield Running(store, http)
        finally:
            stop.set()


def families(text: str) -> dict[str, Family]:
    return {
        family.name + ("_total" if family.type == "counter" else ""): family
        for family in text_string_to_metric_families(text)
    }


def shown(text: str) -> set[str]:
    """Names with a sample."""
    return {name for name, family in families(text).items() if family.samples}


def check_against_table(text: str) -> None:
    assert set(families(text)) == set(METRICS)
    for name, family in families(text).items():
        metric = METRICS[name]
        assert (family.type, family.documentation) == (metric.kind, metric.help)
        for sample in family.samples:
            labels = {label: v for label, v in sample.labels.items() if label != "le"}
            assert labels.keys() == metric.labels.keys(), sample
            for label, value in labels.items():
                assert value in (metric.labels[label] or (STREAM,)), sample


async def test_the_doctor_knows_a_running_service(service: Running) -> None:
    found = await asyncio.to_thread(running_version, str(service.http.base_url).rstrip("/"))
    assert found == __version__


async def test_a_running_service_exposes_the_table(service: Running) -> None:
    early = await service.scrape()
    check_against_table(early)
    assert shown(early) >= {name for name, metric in METRICS.items() if metric.since == "start"}

    await service.store.create_stream(STREAM, SETTINGS.stream_spec("synthetic:bounce?size=64"))
    text = await service.scrape_until(lambda text: shown(text) == set(METRICS))
    check_against_table(text)

    found = read_samples(text)
    published = found["streamer_clips_total{fate=published,stream=cam}"]
    assert published >= 2
    assert found["streamer_source_state{state=live,stream=cam}"] == 1
    assert found["streamer_stage_seconds_count{stage=decode}"] >= published
    assert found["streamer_capture_to_event_seconds_count{stream=cam}"] >= published
    assert 0 < found["streamer_capture_to_event_seconds_sum{stream=cam}"] < 60 * (published + 1)
    assert found["streamer_source_reconnects_total{stream=cam}"] == 0

    await service.store.delete_stream(STREAM)
    check_against_table(await service.scrape_until(lambda text: f'"{STREAM}"' not in text))
