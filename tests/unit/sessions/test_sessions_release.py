"""What a decode thread needed is freed when it ends, not when the collector happens to look."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from doubles import TINY, ScriptedSource, pictures, wait_until

from streamer.clock import wall_ns
from streamer.errors import SourceStalled
from streamer.frames.framer import Framer
from streamer.records import Sampling, StreamRecord, StreamSpec
from streamer.sessions.config import SessionConfig
from streamer.sessions.intake import Intake

pytestmark = pytest.mark.unit

UNREADABLE = np.zeros((4, 4), dtype=np.uint8)


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def framers(monkeypatch: pytest.MonkeyPatch) -> list[weakref.ref[Framer]]:
    made: list[weakref.ref[Framer]] = []

    class Watched(Framer):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            made.append(weakref.ref(self))

    monkeypatch.setattr("streamer.sessions.intake.Framer", Watched)
    return made


def intake() -> Intake:
    sampling = Sampling(frames=8, fps=4.0, stride_s=0.5)
    spec = StreamSpec(source="scripted", sampling=sampling)
    record = StreamRecord(stream="door", spec=spec, created_ns=wall_ns())
    return Intake(record, model=TINY, report=lambda state: None, config=SessionConfig())


@pytest.mark.parametrize(
    "steps",
    [
        pictures(10),
        [*pictures(10), SourceStalled("nothing came")],
        [replace(each, image=UNREADABLE) for each in pictures(40)],
    ],
    ids=["stopped", "failed", "unreadable"],
)
async def test_the_converter_and_the_window_go_with_the_thread(
    steps: list[Any], framers: list[weakref.ref[Framer]]
) -> None:
    decoding = intake()
    source = ScriptedSource(steps=steps)
    await decoding.start(source)
    await wait_until(lambda: decoding.counts.pictures >= 8)
    await decoding.stop()
    assert source.ended.is_set()
    assert framers and all(framer() is None for framer in framers)
    assert decoding.counts.pictures >= 8  # what it counted stays
