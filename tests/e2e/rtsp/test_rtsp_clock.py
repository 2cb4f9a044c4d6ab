"""Cameras whose wall clock is right, wrong, set while they run, or never told."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise

import pytest
from doubles import TINY, FakePipeline, read_bodies, wait_for, wait_until
from rtsp_camera import LOOPBACK
from rtsp_reports import ReportProxy

from streamer.records import ClockReading, Sampling, StreamSpec
from streamer.sessions.session import Session
from streamer.sources.rtsp import RtspSource
from streamer.store.memory import MemoryStore

pytestmark = pytest.mark.e2e

OFTEN_S = 0.4
HOUR = 3600.0


def wait_reading(watched, why: str) -> ClockReading:
    """Wait for a picture with such a reading."""
    found: list[ClockReading] = []

    def holds() -> bool:
        reading = watched.source.reading
        if reading is not None and reading.why == why:
            found.append(reading)
        return bool(found)

    watched.wait_for(holds)
    return found[0]


def url(proxy: ReportProxy) -> str:
    return f"rtsp://127.0.0.1:{proxy.port}/cam"


def test_a_right_clock_is_believed(camera, watch) -> None:
    with ReportProxy(camera(report_every_s=OFTEN_S).port) as proxy:
        watched = watch(url(proxy))
        reading = wait_reading(watched, "ok")
        assert (reading.clock, reading.is_believed) == ("rtcp", True)
        assert reading.offset_s is not None and -1.0 < reading.offset_s < 0.1
        assert reading.reports >= 1
        watched.wait_pictures(10)
        captured = [picture.captured_at_ns for picture in watched.pictures]
        assert all(a <= b for a, b in pairwise(captured))
        assert watched.pictures[-1].clock == "rtcp"


@pytest.mark.parametrize("ahead_s", [-HOUR, HOUR])
def test_a_clock_an_hour_wrong_is_not_believed(camera, watch, ahead_s: float) -> None:
    with ReportProxy(camera(report_every_s=OFTEN_S).port, ahead_s=ahead_s) as proxy:
        watched = watch(url(proxy))
        reading = wait_reading(watched, "skewed")
        assert reading.offset_s == pytest.approx(ahead_s, abs=1.0)
        watched.wait_pictures(10)
        assert {picture.clock for picture in watched.pictures[1:]} == {"media"}
        age_s = (time.time_ns() - watched.pictures[-1].captured_at_ns) / 1e9
        assert -0.1 < age_s < 2.0


def test_a_camera_without_sender_reports(camera, watch) -> None:
    with ReportProxy(camera(report_every_s=OFTEN_S).port, reports="drop") as proxy:
        watched = watch(url(proxy))
        watched.wait_for(lambda: proxy.seen >= 2)
        watched.wait_pictures(10)
        reading = watched.source.reading
        assert (reading.clock, reading.why, reading.reports) == ("media", "no_reports", 0)
        assert {picture.clock for picture in watched.pictures[1:]} == {"media"}


def test_a_clock_that_is_set_wrong_and_right_while_it_is_watched(camera, watch) -> None:
    with ReportProxy(camera(report_every_s=OFTEN_S).port) as proxy:
        watched = watch(url(proxy))
        wait_reading(watched, "ok")
        proxy.ahead_s = 5 * HOUR
        wait_reading(watched, "jumped")
        assert wait_reading(watched, "skewed").offset_s == pytest.approx(5 * HOUR, abs=1.0)
        proxy.ahead_s = 0.0
        wait_reading(watched, "ok")
        captured = [picture.captured_at_ns for picture in watched.pictures]
        assert all(a <= b for a, b in pairwise(captured))
        assert {picture.generation for picture in watched.pictures} == {0}


async def test_a_session_says_that_the_clock_is_wrong_and_that_it_is_right_again(camera) -> None:
    store = MemoryStore()
    pipeline = FakePipeline(store=store)

    async def shown(why: str) -> dict[str, object]:
        found: dict[str, object] = {}

        async def holds() -> bool:
            found.update(await store.get_status("cam") or {})
            return found.get("clock_why") == why

        await wait_for(holds)
        return found

    with ReportProxy(camera(report_every_s=OFTEN_S).port, ahead_s=HOUR) as proxy:
        spec = StreamSpec(source=url(proxy), sampling=Sampling(frames=8, fps=8.0, stride_s=0.25))
        record, _ = await store.create_stream("cam", spec)
        session = Session(
            record,
            store=store,
            pipeline=pipeline,
            model=TINY,
            open_source=lambda url: RtspSource(url, policy=LOOPBACK),
            owner="here",
        )
        running = asyncio.ensure_future(session.run())
        status = await shown("skewed")
        assert status["clock"] == "media"
        assert status["clock_offset_s"] == pytest.approx(HOUR, abs=1.0)
        await wait_until(lambda: any("clock_skewed" in r.notes for r in pipeline.requests))
        proxy.ahead_s = 0.0
        assert (await shown("ok"))["clock"] == "rtcp"
        before = len(pipeline.requests)
        await wait_until(lambda: len(pipeline.requests) >= before + 2)
        assert "clock_skewed" not in pipeline.requests[-1].notes
        assert pipeline.requests[-1].clock == "rtcp"
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    told = [body for body in await read_bodies(store, "cam") if body["type"] == "stream.state"]
    about = [body for body in told if str(body["reason"]).startswith("clock")]
    assert [body["reason"] for body in about] == ["clock_skewed", "clock_ok"]
    assert "ahead of ours" in str(about[0]["detail"]) and "NTP" in str(about[0]["detail"])
