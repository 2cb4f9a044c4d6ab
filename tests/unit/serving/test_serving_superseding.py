"""A rollout that a newer clip makes worthless ends early, with what it has."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from doubles import wait_until

from streamer.events.schema import Anticipation
from streamer.models.vjepa2 import VJepa2
from streamer.records import Latent
from streamer.serving.anticipating import AnticipationService
from streamer.serving.device import DeviceThread
from streamer.serving.local import LocalPipeline
from streamer.serving.rollout_engine import Foretold, RolloutEngine, RolloutJob
from streamer.serving.superseding import Unfinished

pytestmark = pytest.mark.unit


def test_a_flag_is_set_for_its_clip_only_while_it_is_unfinished() -> None:
    unfinished = Unfinished()
    with (
        unfinished.rollout(stream="cam", clip=1) as mine,
        unfinished.rollout(stream="cam", clip=1) as of_another_session,
        unfinished.rollout(stream="cam", clip=2) as newer,
        unfinished.rollout(stream="door", clip=1) as door,
    ):
        unfinished.supersede(stream="cam", clip=1)
        unfinished.supersede(stream="cam", clip=7)
        found = [flag.is_set() for flag in (mine, of_another_session, newer, door)]
        assert found == [True, True, False, False]
    assert len(unfinished) == 0


@pytest.fixture
def latent(small_model: VJepa2) -> Latent:
    tokens = torch.randn(16, 24, generator=torch.Generator().manual_seed(1))
    grid = (4, 2, 2)
    return Latent(
        stream="cam", clip=0, tokens=tokens, normed=False, grid=grid, model=small_model.fingerprint
    )


def job(latent: Latent, mode: Any, steps: tuple[int, ...]) -> RolloutJob:
    foretold = Foretold(tokens=torch.zeros(4, 24), tubelets_ago=1)
    return RolloutJob(latent=latent, mode=mode, fps=4.0, steps=steps, foretold=foretold)


@contextmanager
def superseded_in_step(model: VJepa2, flag: threading.Event, step: int) -> Iterator[None]:
    """Sets the flag while the predictor runs for the `step`th time; 0: before it runs."""
    calls = 0

    def before(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls == step:
            flag.set()

    if step == 0:
        flag.set()
    hook = model.predictor.register_forward_pre_hook(before)
    try:
        yield
    finally:
        hook.remove()


@pytest.mark.parametrize("mode", ["contiguous", "gap"])
@pytest.mark.parametrize("step", [0, 1, 2, 3])
def test_what_is_there_is_what_the_whole_would_have_been(
    small_model: VJepa2, latent: Latent, mode: str, step: int
) -> None:
    engine = RolloutEngine(small_model)
    whole = engine.run(job(latent, mode, (1, 2, 3)))
    cut = job(latent, mode, (1, 2, 3))
    with superseded_in_step(small_model, cut.superseded, step):
        found = engine.run(cut)
    made = max(1, step)
    assert found.tokens.shape[0] == len(found.drifts) == made
    assert torch.equal(found.tokens, whole.tokens[:made])
    assert found.drifts == whole.drifts[:made]
    assert found.surprise == whole.surprise
    assert (found.is_superseded, whole.is_superseded) == (made < 3, False)


def test_it_goes_on_to_the_first_horizon_that_is_wanted(
    small_model: VJepa2, latent: Latent
) -> None:
    engine = RolloutEngine(small_model)
    cut = job(latent, "contiguous", (2, 3))
    cut.superseded.set()
    found = engine.run(cut)
    assert torch.equal(found.tokens, engine.run(job(latent, "contiguous", (2, 3))).tokens[:1])


async def test_one_that_waits_for_the_device_publishes_its_first_horizon(
    small_model: VJepa2, leased: Any, latent: Latent, make_clip: Any, make_request: Any
) -> None:
    store, lease = leased
    device = DeviceThread()
    service = AnticipationService(small_model, store=store, device=device)
    is_free = threading.Event()
    busy = asyncio.ensure_future(device.run(lambda: is_free.wait(10)))
    horizons_s = (0.5, 1.0, 1.5)
    requests = [
        make_request(make_clip(n), lease=lease.token, horizons_s=horizons_s) for n in range(2)
    ]
    waiting = [asyncio.ensure_future(service.anticipate(latent, each)) for each in requests]
    await wait_until(lambda: service._batcher.waiting == 2)
    service.supersede(stream="cam", clip=0)
    is_free.set()
    cut, whole = await asyncio.gather(*waiting)
    await busy
    assert (cut.is_superseded, whole.is_superseded) == (True, False)
    assert (cut.prior.horizons_s, cut.prior.tokens.shape[0]) == ((0.5,), 1)
    assert torch.equal(cut.prior.tokens, whole.prior.tokens[:1])
    events = [
        Anticipation.model_validate({"id": "e:1", "seq": 1} | json.loads(entry.body))
        for entry in (await store.read("cam", after_seq=0)).entries
    ]
    assert [[each.horizon_s for each in event.futures] for event in events] == [
        [0.5],
        [0.5, 1.0, 1.5],
    ]
    assert events[0].futures == events[1].futures[:1]
    assert [event.notes for event in events] == [["superseded", "untrained"], ["untrained"]]
    assert len(service._unfinished) == 0
    await service.close()
    await device.close()


async def test_a_prior_cut_short_is_judged_by_the_horizon_it_has(
    small_model: VJepa2, leased: Any, make_clip: Any, make_request: Any
) -> None:
    """Two ticks of a tubelet each lie between the clips: 1.0 s ahead would be the newest one."""
    store, lease = leased
    pipeline = LocalPipeline(small_model, store=store)
    clips = [make_clip(n, seed=n) for n in range(2)]
    encoded = [await pipeline.encode(clip) for clip in clips]
    flags = pipeline._anticipating._unfinished
    with superseded_at_once(flags):
        first = await pipeline.anticipate(encoded[0], make_request(clips[0], lease=lease.token))
    assert first.prior is not None and first.prior.horizons_s == (0.5,)
    request = make_request(clips[1], lease=lease.token, prior=first.prior)
    second = await pipeline.anticipate(encoded[1], request)
    body = json.loads((await store.read("cam", after_seq=first.seq)).entries[0].body)
    assert (body["surprise"]["horizon_s"], body["surprise"]["predicted_by"]) == (0.5, first.seq)
    assert not second.is_superseded
    await pipeline.close()


@contextmanager
def superseded_at_once(unfinished: Unfinished) -> Iterator[None]:
    """Each rollout that begins in here is superseded already."""
    original = unfinished.rollout

    @contextmanager
    def rollout(*, stream: str, clip: int) -> Iterator[threading.Event]:
        with original(stream=stream, clip=clip) as flag:
            flag.set()
            yield flag

    unfinished.rollout = rollout  # type: ignore[method-assign]
    yield
    unfinished.rollout = original  # type: ignore[method-assign]
