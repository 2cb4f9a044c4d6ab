"""A pipeline whose answers come when the test says so."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from streamer.clock import monotonic_ns
from streamer.records import (
    AnticipationReply,
    AnticipationRequest,
    Clip,
    Encoded,
    Prior,
    SurpriseState,
)

__all__ = ["StagedPipeline", "clip_of", "settle"]

Half = Literal["encode", "roll"]


def clip_of(index: int, *, stream: str = "cam", frames: int = 8) -> Clip:
    """A clip that arrived just now; two ticks after the one before it."""
    return Clip(
        stream=stream,
        index=index,
        frames=np.zeros((frames, 16, 16, 3), dtype=np.uint8),
        start_ns=0,
        end_ns=(frames + 2 * index) * 250_000_000,
        fps=4.0,
        first_frame=2 * index,
        last_frame=frames - 1 + 2 * index,
        last_tick=frames - 1 + 2 * index,
        dropped=0,
        filled=0,
        clock="media",
        generation=0,
        arrived_ns=monotonic_ns(),
    )


async def settle() -> None:
    """Let everything run that can run without another answer."""
    for _ in range(30):
        await asyncio.sleep(0)


@dataclass(kw_only=True)
class StagedPipeline:
    """Keeps both halves of each clip open until `answer` or `refuse`.

    A superseded rollout goes on until it is answered, unless `is_obedient`.
    """

    is_obedient: bool = False
    shares_device: bool = False
    horizons_s: tuple[float, ...] = (0.5, 1.0)
    log: list[tuple[str, int]] = field(default_factory=list)
    """encode, roll, supersede, event with the clip's index, as they began; event when published."""
    requests: list[AnticipationRequest] = field(default_factory=list)
    encoded: list[Encoded] = field(default_factory=list)
    """What came with each request."""
    on_supersede: Exception | None = None
    """Raised instead of anything else."""
    open: dict[tuple[Half, int], asyncio.Future[int]] = field(default_factory=dict)
    """What waits for its answer; for a rollout the number of horizons."""
    cancelled: list[tuple[Half, int]] = field(default_factory=list)

    async def encode(self, clip: Clip) -> Encoded:
        await self._wait("encode", clip.index)
        return Encoded(
            latent=f"latent {clip.index}",
            queue_ms=1.0,
            encode_ms=2.0,
            shares_device=self.shares_device,
        )

    async def anticipate(self, encoded: Encoded, request: AnticipationRequest) -> AnticipationReply:
        assert not self.rolling, "two rollouts of one stream at once"
        self.requests.append(request)
        self.encoded.append(encoded)
        made = await self._wait("roll", request.clip)
        seq = len(self.events) + 1
        self.log.append(("event", request.clip))
        prior = Prior(
            seq=seq,
            generation=request.generation,
            last_tick=request.last_tick,
            horizons_s=self.horizons_s[:made],
            tokens=None,
        )
        return AnticipationReply(
            seq=seq,
            prior=prior,
            surprise=SurpriseState(history=(*request.surprise.history, float(request.clip))),
            is_superseded=made < len(self.horizons_s),
        )

    async def supersede(self, stream: str, clip: int) -> None:
        assert stream == "cam"
        self.log.append(("supersede", clip))
        if self.on_supersede is not None:
            raise self.on_supersede
        if self.is_obedient and ("roll", clip) in self.open:
            self.answer("roll", clip, horizons=1)

    @property
    def events(self) -> list[int]:
        return [clip for what, clip in self.log if what == "event"]

    @property
    def encoding(self) -> list[int]:
        return [clip for half, clip in self.open if half == "encode"]

    @property
    def rolling(self) -> list[int]:
        return [clip for half, clip in self.open if half == "roll"]

    def answer(self, half: Half, clip: int, *, horizons: int | None = None) -> None:
        self.open.pop((half, clip)).set_result(horizons or len(self.horizons_s))

    def refuse(self, half: Half, clip: int, error: Exception) -> None:
        self.open.pop((half, clip)).set_exception(error)

    async def _wait(self, half: Half, clip: int) -> int:
        self.log.append((half, clip))
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.open[half, clip] = answer
        try:
            return await answer
        except asyncio.CancelledError:
            self.cancelled.append((half, clip))
            raise
        finally:
            if self.open.get((half, clip)) is answer:
                del self.open[half, clip]
