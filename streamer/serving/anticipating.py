"""Latents to futures to one published event: the rollout side of the service."""

# K horizons  P tokens per tubelet  D width

from __future__ import annotations

import threading
from collections.abc import Sequence

from streamer.clock import wall_ns
from streamer.events.parts import Surprise
from streamer.events.schema import AnticipationBody
from streamer.futures.config import RolloutConfig, SurpriseConfig
from streamer.futures.surprise import Match
from streamer.latents.config import PictureConfig
from streamer.models.vjepa2 import VJepa2
from streamer.records import (
    AnticipationReply,
    AnticipationRequest,
    Latent,
    ModelInfo,
    Prior,
    RolloutMode,
)
from streamer.serving.anticipation_event import (
    anticipation_body,
    future_labels,
    latency_ms,
    notes_of,
)
from streamer.serving.batcher import Batched, Batcher
from streamer.serving.config import BatchConfig
from streamer.serving.device import DeviceThread
from streamer.serving.judging import Judge
from streamer.serving.model_info import model_info
from streamer.serving.picturing import Picturing, Scene
from streamer.serving.publishing import Publisher
from streamer.serving.rollout_engine import Rolled, RolloutEngine, RolloutJob
from streamer.serving.rollout_plan import RolloutPlan
from streamer.serving.superseding import Unfinished
from streamer.store.protocol import Store
from streamer.telemetry import Meter, NullMeter

__all__ = ["AnticipationService"]


class AnticipationService:
    """Rolls out, measures surprise, appends the event. Keeps nothing of a stream.

    Args:
        model: on its device, in eval mode; the one that made the latents.
        store: where events are appended.
        device: shared with whatever else computes there; whoever made it closes it.
    """

    def __init__(
        self,
        model: VJepa2,
        *,
        store: Store,
        device: DeviceThread,
        config: RolloutConfig | None = None,
        surprise: SurpriseConfig | None = None,
        batch: BatchConfig | None = None,
        pictures: PictureConfig | None = None,
        meter: Meter | None = None,
    ) -> None:
        config = config or RolloutConfig()
        self._device = device
        self._meter = meter or NullMeter()
        self._publisher = Publisher(store, meter=self._meter)
        self._unfinished = Unfinished()
        self.info: ModelInfo = model_info(model, dtype=config.dtype)
        self._plan = RolloutPlan(
            self.info,
            side=model.config.grid_size,
            width=model.config.hidden_size,
            config=config,
        )
        self._judge = Judge(self.info, config=surprise or SurpriseConfig(), meter=self._meter)
        self.picturing = Picturing(
            model,
            store=store,
            device=device,
            config=pictures or PictureConfig(),
            meter=self._meter,
        )
        """Shows latents as colours; begun behind each event's back."""
        self._engine = RolloutEngine(model, config=config)
        self._batcher: Batcher[RolloutJob, Rolled] = Batcher(
            self._roll, device=device, stage="rollout", config=batch, meter=meter
        )

    async def anticipate(
        self,
        latent: Latent,
        request: AnticipationRequest,
        *,
        queue_ms: float = 0.0,
        encode_ms: float = 0.0,
    ) -> AnticipationReply:
        """Make the event of one clip, and append it unless the request says otherwise.

        Args:
            latent: raw, of this service's model.
            request: the clip without its pixels. A prior whose `tokens` is None was lost on its
                way: there is no surprise then, and the event says so.
            queue_ms, encode_ms: as the encoder side measured them.

        Returns:
            The event's seq, the futures `[K, P, D]` as a tensor (of fewer horizons when it was
            superseded), and the stream's new baseline.

        Cancellation loses the event, unless its append was under way.

        Raises:
            ConfigError, HorizonUnreachable: the horizons cannot be had of this clip.
            ModelError: the latent is of another model, normed, or does not fit.
            CapacityError: too many rollouts wait, or the service is closing.
            LeaseLost: the lease in the request is no longer the stream's.
        """
        self._plan.check(latent)
        horizons_s = self._plan.horizons_s(latent, request)
        match = self._judge.match(latent, request)
        # A caller's own file may be called like a stream, whose newer clips do not concern it.
        stream = request.stream if request.number is None else ""
        with self._unfinished.rollout(stream=stream, clip=request.clip) as superseded:
            job = self._job(latent, request, horizons_s, match, superseded)
            done = await self._batcher.submit(job)
        horizons_s = horizons_s[: len(done.result.drifts)]
        judged = self._judge.judge(request, value=done.result.surprise, match=match)
        body = self._body(
            request,
            horizons_s,
            done,
            surprise=judged.surprise,
            queue_ms=queue_ms + done.queue_ms,
            encode_ms=encode_ms,
        )
        published = await self._publisher.publish(request, body)
        seq = published.seq
        state, told = self._judge.conclude(request, judged, seq=seq)
        await self._publisher.publish_episode(request, told)
        tokens = done.result.tokens
        self.picturing.begin(
            request, Scene(latent=latent, futures=tokens, horizons_s=horizons_s, seq=seq)
        )
        prior = Prior(
            seq=seq,
            model=self.info.fingerprint,
            generation=request.generation,
            last_tick=request.last_tick,
            horizons_s=horizons_s,
            tokens=tokens,
        )
        return AnticipationReply(
            seq=seq,
            prior=prior,
            surprise=state,
            is_superseded=done.result.is_superseded,
            body=published.body,
            episode_body=None if request.number is None else told,
        )

    def supersede(self, *, stream: str, clip: int) -> None:
        """A newer clip of the stream is ready: this one's rollout, if it is unfinished, ends with
        the step under way and publishes the horizons it has, at least one."""
        self._unfinished.supersede(stream=stream, clip=clip)

    async def warm_up(self, *, frames: int | None = None) -> None:
        """Run one short rollout in each mode, so that the first real one is not slow.

        Args:
            frames: per clip; None: as the model was trained.
        """
        latent = self._plan.blank(frames=frames or self.info.trained_frames)
        modes: tuple[RolloutMode, ...] = ("contiguous", "gap")
        for mode in modes:
            job = RolloutJob(latent=latent, mode=mode, fps=1.0, steps=(1,))
            await self._batcher.submit(job)
        await self.picturing.warm_up()

    async def close(self) -> None:
        """Refuse new latents, answer those accepted."""
        await self._batcher.close()
        await self.picturing.close()

    def _roll(self, jobs: Sequence[RolloutJob]) -> Sequence[Rolled]:
        return [self._engine.run(job) for job in jobs]

    def _job(
        self,
        latent: Latent,
        request: AnticipationRequest,
        horizons_s: tuple[float, ...],
        match: Match | None,
        superseded: threading.Event,
    ) -> RolloutJob:
        return RolloutJob(
            latent=latent,
            mode=request.mode,
            fps=request.fps,
            steps=self._plan.steps(horizons_s, fps=request.fps),
            foretold=self._judge.foretold(request.prior, match),
            superseded=superseded,
        )

    def _body(
        self,
        request: AnticipationRequest,
        horizons_s: tuple[float, ...],
        done: Batched[Rolled],
        *,
        surprise: Surprise | None,
        queue_ms: float,
        encode_ms: float,
    ) -> AnticipationBody:
        rolled, now_ns = done.result, wall_ns()
        return anticipation_body(
            request,
            model=self.info,
            futures=[
                future_labels(request, horizon_s=each, drift=drift, tubelet=self.info.tubelet)
                for each, drift in zip(horizons_s, rolled.drifts, strict=True)
            ],
            surprise=surprise,
            latency=latency_ms(
                request,
                queue_ms=queue_ms,
                encode_ms=encode_ms,
                rollout_ms=done.run_ms,
                now_ns=now_ns,
            ),
            notes=notes_of(
                request,
                is_trained=self.info.trained,
                is_extrapolated=rolled.is_extrapolated,
                is_prior_lost=self._judge.is_lost(request.prior),
                is_superseded=rolled.is_superseded,
            ),
            now_ns=now_ns,
        )
