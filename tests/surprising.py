"""A pipeline whose surprise is a script, and the events it makes. Judged as the service does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from doubles import TINY

from streamer.clock import format_utc
from streamer.errors import CapacityError
from streamer.events.parts import LatencyMs, ModelRef, Surprise, Window
from streamer.events.schema import AnticipationBody, retained_body
from streamer.futures.config import SurpriseConfig
from streamer.futures.episodes import Judged, advance
from streamer.futures.surprise import Score
from streamer.records import AnticipationReply, AnticipationRequest, Clip, Encoded, Prior
from streamer.serving.episode_event import episode_body
from streamer.store.protocol import Store

__all__ = ["SurprisingPipeline", "anticipation"]

_LATENCY = LatencyMs(
    decode=0, assemble=0, queue=0, encode=0, rollout=0, probe=0, transfer=0, total=0
)


def anticipation(
    *, end_ns: int, z: float | None, episode: str | None, stream: str = "cam"
) -> AnticipationBody:
    """An event whose surprise is `z`, value and all; none when that is None."""
    end = format_utc(end_ns)
    surprise = None
    if z is not None:
        surprise = Surprise(
            value=1 + z / 100, z=z, baseline=1, horizon_s=0.5, predicted_by=1, episode=episode
        )
    return AnticipationBody(
        stream=stream,
        time=end,
        capture_time=end,
        capture_clock="media",
        window=Window(
            start=format_utc(end_ns - 10**9),
            end=end,
            frames=8,
            fps=4,
            first_frame=0,
            last_frame=7,
            dropped=0,
        ),
        futures=[],
        surprise=surprise,
        latency_ms=_LATENCY,
        model=ModelRef(name=TINY.name, fingerprint=TINY.fingerprint, trained=False),
    )


@dataclass(kw_only=True)
class SurprisingPipeline:
    """Makes two appends per clip, as the service does.

    A clip may meet its fate `before` both appends, `between` them, or `after` them.
    """

    store: Store
    zs: Mapping[int, float] = field(default_factory=dict)
    """Clip -> z-score; of the others it is 0."""
    lost: Mapping[int, str] = field(default_factory=dict)
    """Clip -> where its answer is lost."""
    hangs: Mapping[int, str] = field(default_factory=dict)
    """Clip -> where nothing goes on any more."""
    hung: asyncio.Event = field(default_factory=asyncio.Event)
    on_request: Callable[[AnticipationRequest], None] = lambda request: None
    config: SurpriseConfig = field(default_factory=SurpriseConfig)
    requests: list[AnticipationRequest] = field(default_factory=list)

    async def encode(self, clip: Clip) -> Encoded:
        return Encoded(latent=None, queue_ms=0, encode_ms=0)

    async def supersede(self, stream: str, clip: int) -> None:
        """Nothing here takes long."""

    async def anticipate(self, encoded: Encoded, request: AnticipationRequest) -> AnticipationReply:
        self.on_request(request)
        self.requests.append(request)
        z = self.zs.get(request.clip, 0.0)
        judged = Judged(
            captured_ns=request.end_ns, generation=0, value=1 + z / 100, z=z, predicted_by=1
        )
        new_id = f"episode-{len(self.requests)}"
        step = advance(request.surprise, judged, new_id=new_id, config=self.config)
        name = step.episode.id if step.episode else None
        body = anticipation(end_ns=request.end_ns, z=z, episode=name)
        await self._meet_fate("before", request.clip)
        seq = await self._append(request, retained_body(body))
        await self._meet_fate("between", request.clip)
        step = step.numbered(seq)
        if step.phase is not None and step.episode is not None:
            told = episode_body(
                request,
                step.episode,
                phase=step.phase,
                reason=step.reason,
                score=Score(value=1 + z / 100, z=z, baseline=1),
                seq=seq,
                threshold=self.config.enter_z,
                model=TINY,
                now_ns=request.end_ns,
            )
            await self._append(request, retained_body(told))
        await self._meet_fate("after", request.clip)
        prior = Prior(
            seq=seq, generation=0, last_tick=request.last_tick, horizons_s=(0.5,), tokens=None
        )
        return AnticipationReply(seq=seq, prior=prior, surprise=step.state)

    async def _append(self, request: AnticipationRequest, body: bytes) -> int:
        return await self.store.append(request.stream, lease=request.lease, body=body)

    async def _meet_fate(self, where: str, clip: int) -> None:
        if self.lost.get(clip) == where:
            raise CapacityError("The replica died.", 0.001)
        if self.hangs.get(clip) == where:
            self.hung.set()
            await asyncio.get_running_loop().create_future()
