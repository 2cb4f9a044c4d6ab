"""From clips to events in the log, through both services and a real small model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from streamer.clock import parse_utc, wall_ns
from streamer.errors import (
    CapacityError,
    ConfigError,
    HorizonUnreachable,
    LeaseLost,
    ModelError,
    NumericalError,
    ShapeMismatch,
)
from streamer.events.schema import Anticipation
from streamer.futures.rollout import Rollout
from streamer.futures.surprise import distance
from streamer.models.vjepa2 import VJepa2
from streamer.records import SurpriseState
from streamer.serving.config import BatchConfig, ServingConfig
from streamer.serving.local import LocalPipeline

pytestmark = pytest.mark.unit


class Line:
    """A pipeline with its store: one clip in, one parsed event out."""

    def __init__(self, pipeline: LocalPipeline, store: Any, lease: str, request: Any) -> None:
        self.pipeline = pipeline
        self.store = store
        self.lease = lease
        self._request = request

    async def anticipate(self, clip, **changes) -> SimpleNamespace:
        encoded = await self.pipeline.encode(clip)
        request = self._request(clip, **({"lease": self.lease} | changes))
        reply = await self.pipeline.anticipate(encoded, request)
        (entry,) = (await self.store.read("cam", after_seq=reply.seq - 1)).entries
        event = Anticipation.model_validate({"id": "e:1", "seq": 1} | json.loads(entry.body))
        return SimpleNamespace(encoded=encoded, reply=reply, event=event, body=entry.body)


@pytest.fixture
async def line(small_model, leased, make_request) -> AsyncIterator[Line]:
    store, lease = leased
    pipeline = LocalPipeline(small_model, store=store)
    yield Line(pipeline, store, lease.token, make_request)
    await pipeline.close()


async def test_the_event_says_what_was_seen_and_foretold(line, make_clip, small_model) -> None:
    found = await line.anticipate(make_clip(), horizons_s=(1.0, 0.3))
    event = found.event
    assert not {"id", "seq"} & json.loads(found.body).keys()
    assert (event.stream, event.capture_clock) == ("cam", "file")
    assert event.capture_time == event.window.end == "2023-11-14T22:13:20.000000Z"
    assert (event.window.frames, event.window.fps, event.window.last_frame) == (8, 4.0, 53)
    assert [future.horizon_s for future in event.futures] == [0.5, 1.0]
    assert event.futures[0].start == "2023-11-14T22:13:20.250000Z"
    assert event.futures[1].start == "2023-11-14T22:13:20.750000Z"
    assert event.futures[1].end == "2023-11-14T22:13:21.000000Z"
    assert all(future.drift > 0 for future in event.futures)
    assert event.surprise is None
    assert event.notes == ["untrained"]
    assert event.model.fingerprint == small_model.fingerprint
    assert event.model.trained is False


async def test_the_prior_holds_the_futures_asked_for(line, make_clip, small_model) -> None:
    found = await line.anticipate(make_clip())
    prior, latent = found.reply.prior, found.encoded.latent
    assert prior.tokens.shape == (2, 4, 24)
    assert (prior.seq, prior.last_tick, prior.horizons_s) == (found.reply.seq, 7, (0.5, 1.0))
    futures = Rollout(small_model).contiguous(latent.tokens, grid=latent.grid, fps=4.0, steps=2)
    torch.testing.assert_close(prior.tokens, torch.stack([each.tokens for each in futures]))


async def test_surprise_compares_the_furthest_matching_horizon(line, make_clip) -> None:
    first = await line.anticipate(make_clip(0), horizons_s=(0.5, 1.0, 1.5))
    second = await line.anticipate(make_clip(1, seed=1), prior=first.reply.prior)
    surprise, truth = second.event.surprise, second.encoded.latent.tokens[-4:]
    assert surprise is not None
    assert (surprise.horizon_s, surprise.predicted_by) == (1.0, first.reply.seq)
    expected = distance(first.reply.prior.tokens[1], truth).item()
    assert surprise.value == pytest.approx(expected, rel=1e-5)
    assert (surprise.z, surprise.baseline) == (None, None)
    assert second.reply.surprise.history == pytest.approx((expected,))


async def test_an_older_prior_is_judged_by_an_older_tubelet(line, make_clip) -> None:
    first = await line.anticipate(make_clip(0), horizons_s=(0.5,))
    second = await line.anticipate(make_clip(1, seed=1), prior=first.reply.prior)
    truth = second.encoded.latent.tokens[-8:-4]
    expected = distance(first.reply.prior.tokens[0], truth).item()
    assert second.event.surprise.value == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"generation": 1}, []),
        ({"last_tick": 6}, []),
        ({"tokens": None}, ["prior_lost"]),
        ({"model": "another"}, ["prior_lost"]),
    ],
)
async def test_no_surprise_without_a_matching_prior(line, make_clip, change, note) -> None:
    first = await line.anticipate(make_clip(0))
    state = SurpriseState(history=(1.0,))
    prior = replace(first.reply.prior, **change)
    second = await line.anticipate(make_clip(1), prior=prior, surprise=state)
    assert second.event.surprise is None
    assert second.event.notes == ["untrained", *note]
    assert second.reply.surprise == state


async def test_a_full_baseline_gives_z(line, make_clip) -> None:
    first = await line.anticipate(make_clip(0))
    state = SurpriseState(history=tuple(1 + i / 100 for i in range(64)))
    second = await line.anticipate(make_clip(1), prior=first.reply.prior, surprise=state)
    assert second.event.surprise.baseline == pytest.approx(1.315)
    assert second.event.surprise.z is not None
    assert len(second.reply.surprise.history) == 64


@pytest.mark.parametrize("mode", ["contiguous", "gap"])
async def test_drift_is_counted_from_the_step_before_or_from_what_was_seen(
    line, make_clip, mode
) -> None:
    found = await line.anticipate(make_clip(), mode=mode, horizons_s=(0.5, 1.0))
    futures, newest = found.reply.prior.tokens, found.encoded.latent.tokens[-4:]
    before = [newest, futures[0] if mode == "contiguous" else newest]
    expected = [distance(*pair).item() for pair in zip(futures, before, strict=True)]
    assert [each.drift for each in found.event.futures] == pytest.approx(expected, rel=1e-5)


async def test_gap_mode(line, make_clip) -> None:
    found = await line.anticipate(make_clip(), mode="gap", horizons_s=(0.5, 1.5))
    assert [future.horizon_s for future in found.event.futures] == [0.5, 1.5]
    assert found.event.notes == ["extrapolated", "untrained"]


async def test_notes_of_the_clip(line, make_clip) -> None:
    clip = make_clip(filled=2, padded=3)
    found = await line.anticipate(clip, notes=("stale_window", "degraded_fps"))
    expected = ["degraded_fps", "stale_window", "padded", "filled", "untrained"]
    assert found.event.notes == expected


def _parts(latency) -> float:
    return sum(value for name, value in latency.model_dump().items() if name != "total")


async def test_latency_of_a_file_is_what_was_measured(line, make_clip) -> None:
    latency = (await line.anticipate(make_clip())).event.latency_ms
    assert (latency.decode, latency.assemble, latency.transfer) == (1.5, 0.25, 0.0)
    assert latency.encode > 0 and latency.rollout > 0
    assert latency.total == pytest.approx(_parts(latency), abs=1e-3)


async def test_latency_of_a_camera_is_counted_from_capture(line, make_clip) -> None:
    end_ns = wall_ns() - 2_000_000_000
    clip = make_clip(clock="rtcp", end_ns=end_ns)
    event = (await line.anticipate(clip)).event
    assert event.latency_ms.total >= 2000
    since_ms = (parse_utc(event.time) - parse_utc(event.capture_time)) / 1e6
    assert event.latency_ms.total == pytest.approx(since_ms, abs=0.01)
    assert event.latency_ms.total == pytest.approx(_parts(event.latency_ms), abs=1e-3)


async def test_the_same_clip_gives_the_same_numbers(line, make_clip) -> None:
    one, other = [await line.anticipate(make_clip()) for _ in range(2)]
    assert one.event.futures == other.event.futures
    assert other.reply.seq == one.reply.seq + 1


async def test_what_cannot_be_done_is_refused_and_not_logged(line, make_clip) -> None:
    clip = make_clip()
    with pytest.raises(HorizonUnreachable) as caught:
        await line.anticipate(clip, horizons_s=(0.5, 9.0))
    assert caught.value.largest_s == 1.5
    with pytest.raises(ConfigError):
        await line.anticipate(clip, horizons_s=())
    with pytest.raises(LeaseLost):
        await line.anticipate(clip, lease="stale")
    with pytest.raises(ShapeMismatch):
        await line.pipeline.encode(make_clip(size=24))
    assert (await line.store.read("cam", after_seq=0)).entries == ()


async def test_latents_of_another_kind_are_refused(line, make_clip, make_request) -> None:
    encoded = await line.pipeline.encode(make_clip())
    request = make_request(make_clip(), lease=line.lease)
    for change, error in [
        ({"model": "another"}, ModelError),
        ({"normed": True}, ModelError),
        ({"grid": (2, 2, 4)}, ShapeMismatch),
        ({"tokens": encoded.latent.tokens[:-1]}, ShapeMismatch),
    ]:
        wrong = replace(encoded, latent=replace(encoded.latent, **change))
        with pytest.raises(error):
            await line.pipeline.anticipate(wrong, request)
    broken = replace(encoded.latent, tokens=encoded.latent.tokens * float("nan"))
    with pytest.raises(NumericalError, match="stream cam"):
        await line.pipeline.anticipate(replace(encoded, latent=broken), request)


async def test_many_streams_share_the_device(small_model, leased, make_clip, make_request) -> None:
    store, lease = leased
    config = ServingConfig(encode_batch=BatchConfig(max_batch=4))
    pipeline = LocalPipeline(small_model, store=store, config=config)
    clips = [make_clip(i, seed=i) for i in range(9)]
    together = await asyncio.gather(*(pipeline.encode(clip) for clip in clips))
    for clip, encoded in zip(clips, together, strict=True):
        alone = await pipeline.encode(clip)
        torch.testing.assert_close(encoded.latent.tokens, alone.latent.tokens)
    replies = await asyncio.gather(
        *(
            pipeline.anticipate(encoded, make_request(clip, lease=lease.token))
            for clip, encoded in zip(clips, together, strict=True)
        )
    )
    assert sorted(reply.seq for reply in replies) == list(range(1, 10))
    await pipeline.close()


async def test_a_full_rollout_queue_refuses(small_model, leased, make_clip, make_request) -> None:
    store, lease = leased
    config = ServingConfig(rollout_batch=BatchConfig(max_waiting=1))
    pipeline = LocalPipeline(small_model, store=store, config=config)
    encoded = await pipeline.encode(make_clip())
    request = make_request(make_clip(), lease=lease.token)
    results = await asyncio.gather(
        *(pipeline.anticipate(encoded, request) for _ in range(5)), return_exceptions=True
    )
    refused = [each for each in results if isinstance(each, CapacityError)]
    assert 1 <= len(refused) < 5
    assert (await store.read("cam", after_seq=0)).head_seq == 5 - len(refused)
    await pipeline.close()


async def test_warm_up_info_and_close(line, small_model: VJepa2, make_clip) -> None:
    await line.pipeline.warm_up()
    await line.pipeline.warm_up(frames=4)
    info = line.pipeline.info
    assert (info.name, info.crop, info.trained_frames, info.tubelet) == ("small", 32, 8, 2)
    assert (info.dtype, info.trained, info.fingerprint) == (
        "float32",
        False,
        small_model.fingerprint,
    )
    assert info.config["crop_size"] == 32
    await line.pipeline.close()
    with pytest.raises(CapacityError):
        await line.pipeline.encode(make_clip())
