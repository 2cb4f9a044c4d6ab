"""Latents and futures in Ray's object store: put once, read in place, never copied through a call.

A reference travels inside a list: Ray resolves top-level `ObjectRef` arguments before the method
runs, which would make the method wait where nobody can translate the error.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

import ray
import torch
from ray.exceptions import ObjectLostError, ObjectStoreFullError, OutOfDiskError

from deployments.streams import translated
from streamer.errors import LatentLost
from streamer.records import AnticipationReply, AnticipationRequest, Clip, Encoded, Latent, Prior
from streamer.serving.transfer import pack_latent, pack_tokens, unpack_latent, unpack_tokens

__all__ = ["fetch_frames", "fetch_latent", "fetch_prior", "put_latent", "put_prior"]

_LOG = logging.getLogger("streamer.deployments.references")
# The object's node may be gone without anybody having noticed yet.
_FETCH_S = 10.0


async def fetch_frames(clip: Clip, frames: list[Any]) -> Clip:
    """The clip with the frames that travelled beside it as `[ObjectRef]`.

    Raises:
        CapacityError: they were lost with the ingest replica; `DeadlineExceeded` when they do not
            arrive.
    """
    with translated("ingest"):
        async with asyncio.timeout(_FETCH_S):
            pixels = await frames[0]
    return replace(clip, frames=pixels)


async def put_latent(encoded: Encoded) -> Encoded:
    """The same with `latent` as `[ObjectRef]`. Cancellation: safe."""

    # From a GPU it is a copy, and the first touch of fresh shared memory takes up to 150 ms.
    def put() -> Any:
        return ray.put(pack_latent(encoded.latent))

    return replace(encoded, latent=[await asyncio.to_thread(put)])


async def fetch_latent(encoded: Encoded, *, device: str) -> Latent:
    """The latent behind `[ObjectRef]`; on a CPU it shares memory with the object store.

    Raises:
        LatentLost: it was lost with the encoder replica that made it, or does not arrive.
        CapacityError: Ray cannot fetch it now.
    """
    with translated("encoder"):
        try:
            async with asyncio.timeout(_FETCH_S):
                packed = await encoded.latent[0]
        except (ObjectLostError, TimeoutError) as error:
            raise LatentLost(
                "The latent of this clip was lost with the replica that made it. Encode it again."
            ) from error
    return unpack_latent(packed, device=device)


async def put_prior(reply: AnticipationReply) -> AnticipationReply:
    """The same with the futures as `[ObjectRef]`, or None when there is no room for them: the event
    is in the log already, and only the next one's surprise is lost. Cancellation: safe."""
    if reply.prior is None:
        return reply
    tokens: torch.Tensor = reply.prior.tokens

    def put() -> Any:
        return ray.put(pack_tokens(tokens))

    references: list[Any] | None = None
    try:
        references = [await asyncio.to_thread(put)]
    except (ObjectStoreFullError, OutOfDiskError) as error:
        _LOG.warning("no room for futures", extra={"error": str(error)})
    return replace(reply, prior=replace(reply.prior, tokens=references))


async def fetch_prior(request: AnticipationRequest, *, device: str) -> AnticipationRequest:
    """The same with the futures as a tensor, or None when they were lost: no reason to fail."""
    prior = request.prior
    if prior is None or prior.tokens is None:
        return request
    return replace(request, prior=replace(prior, tokens=await _tokens(prior, device=device)))


async def _tokens(prior: Prior, *, device: str) -> torch.Tensor | None:
    try:
        async with asyncio.timeout(_FETCH_S):
            packed = await prior.tokens[0]
    except (ObjectLostError, TimeoutError):
        return None
    return unpack_tokens(packed, device=device)
