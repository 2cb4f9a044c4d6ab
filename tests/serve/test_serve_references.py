"""What does not arrive is told within a bound, and a latent that is lost as what it is.

No cluster: a reference is awaited, and that is all these functions know of it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
import torch
from ray.exceptions import ObjectLostError, ObjectStoreFullError, OutOfDiskError
from staged_pipeline import clip_of

from deployments import references
from deployments.fused import FusedReplica
from deployments.references import fetch_frames, fetch_latent, put_prior
from deployments.shelf import DropOldestShelf, Ticket
from streamer.errors import CapacityError, DeadlineExceeded, LatentLost
from streamer.records import AnticipationReply, Encoded, Prior, SurpriseState

pytestmark = pytest.mark.serve


def never() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


async def dead() -> Any:
    raise ObjectLostError("ff" * 28, None, "")


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "_FETCH_S", 0.05)


async def test_frames_that_do_not_arrive_are_waited_for_within_a_bound() -> None:
    async with asyncio.timeout(5):
        with pytest.raises(DeadlineExceeded):
            await fetch_frames(clip_of(0), [never()])
        with pytest.raises(CapacityError):
            await fetch_frames(clip_of(0), [dead()])


async def test_frames_are_put_into_their_clip() -> None:
    frames = np.ones((8, 16, 16, 3), dtype=np.uint8)
    arriving = never()
    arriving.set_result(frames)
    assert (await fetch_frames(clip_of(0), [arriving])).frames is frames


@pytest.mark.parametrize("kind", [never, dead])
async def test_a_latent_that_is_gone_has_to_be_made_again(kind: Any) -> None:
    encoded = Encoded(latent=[kind()], queue_ms=0.0, encode_ms=0.0)
    async with asyncio.timeout(5):
        with pytest.raises(LatentLost, match="Encode it again"):
            await fetch_latent(encoded, device="cpu")


@pytest.mark.parametrize("error", [ObjectStoreFullError, OutOfDiskError])
async def test_an_event_is_answered_for_though_its_futures_have_no_room(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in the log already: whoever asked is to know its number."""

    def full(_: Any) -> Any:
        raise error

    monkeypatch.setattr(references.ray, "put", full)
    prior = Prior(seq=7, generation=0, last_tick=7, horizons_s=(0.5,), tokens=torch.zeros(1, 4, 24))
    reply = AnticipationReply(seq=7, prior=prior, surprise=SurpriseState(history=(1.0,)))
    found = await put_prior(reply)
    assert (found.seq, found.surprise) == (7, reply.surprise)
    assert found.prior is not None and found.prior.tokens is None


class Refusing:
    """An `AnticipationService` that has no room at first."""

    refusals = 1

    async def anticipate(self, latent: str, request: Any, **_: Any) -> AnticipationReply:
        assert latent == "latent"
        if self.refusals:
            self.refusals -= 1
            raise CapacityError("The rollout's queue is full.")
        return AnticipationReply(seq=1, prior=None, surprise=SurpriseState())


async def test_a_ticket_is_good_until_its_rollout_was_accepted() -> None:
    replica: Any = FusedReplica.__new__(FusedReplica)
    replica._name, replica._device = "here", "cpu"
    replica._anticipating = Refusing()
    replica._shelf = DropOldestShelf(4, max_age_ns=10**12)
    ticket = Ticket(replica="here", number=replica._shelf.put("latent", now_ns=0))
    encoded = Encoded(latent=ticket, queue_ms=0.0, encode_ms=0.0)
    request: Any = type("Request", (), {"prior": None})()
    with pytest.raises(CapacityError):
        await replica.anticipate(encoded, request)
    assert (await replica.anticipate(encoded, request)).seq == 1
    with pytest.raises(LatentLost):
        await replica.anticipate(encoded, request)
