"""One file through the whole line in one process, without a server: `streamer anticipate FILE`.

It is an ordinary session over a store of its own, so its events are those of the service.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from streamer.events.panels import Panels
from streamer.futures.config import plan_horizons
from streamer.loading import opened_pipeline
from streamer.records import (
    AnticipationReply,
    AnticipationRequest,
    Clip,
    Encoded,
    ModelInfo,
    Pixels,
    StreamSpec,
)
from streamer.serving.local import LocalPipeline
from streamer.sessions.ending import Ending
from streamer.sessions.playing import playing
from streamer.settings import Settings
from streamer.sources.file import FileSource
from streamer.sources.open import file_url, open_source
from streamer.sources.policy import SourcePolicy
from streamer.store.memory import MemoryStore

__all__ = ["Illustrate", "Illustration", "Playback", "file_duration_s", "opened_playback"]

Illustrate = Callable[["Illustration"], None]

_MAX_NAME = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Illustration:
    """One clip as a person may look at it."""

    seq: int
    """Of its anticipation."""
    frame: Pixels
    """The last one, `uint8 [crop, crop, 3]` RGB."""
    panels: Panels
    """Its newest tubelet and its futures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Playback:
    """A file on its way through the line."""

    model: ModelInfo
    events: AsyncIterator[bytes]
    """Each event as it was appended, whole JSON messages with `id` and `seq`; ends after the
    last. Read it to its end, or leave the context to stop early."""
    session: asyncio.Task[Ending]
    """Done once `events` has ended."""


async def file_duration_s(path: Path, *, settings: Settings) -> float | None:
    """Open the file for a moment, to learn its declared length in seconds.

    Raises:
        SourceUnavailable, SourceUnsupported: it cannot be used; the sentence says why.
    """
    source = FileSource(path, name=path.name, config=settings.files)
    await asyncio.to_thread(source.probe)
    return source.duration_s


@asynccontextmanager
async def opened_playback(
    path: Path, *, settings: Settings, illustrate: Illustrate | None = None
) -> AsyncIterator[Playback]:
    """Load the model and start. Leaving the context stops what is still running.

    Args:
        illustrate: takes the picture of each clip, in a thread; `ConfigError` ends the playback.

    Raises:
        ConfigError, HorizonUnreachable: sampling or horizons do not fit the model.
        ModelError, NotFound: the model cannot be loaded.
    """
    store = MemoryStore(settings.store)
    settings = _with_pictures(settings, enabled=illustrate is not None)
    async with opened_pipeline(settings, store=store) as pipeline:
        spec = _planned(settings.stream_spec(file_url(path)), settings, model=pipeline.info)
        record, _ = await store.create_stream(path.stem[:_MAX_NAME] or "file", spec)
        async with playing(
            record,
            store=store,
            pipeline=pipeline if illustrate is None else _Illustrating(pipeline, illustrate),
            model=pipeline.info,
            open_source=partial(open_source, policy=_policy(path), config=settings.source_config()),
            owner="playback",
            config=settings.session,
        ) as play:
            yield Playback(model=pipeline.info, events=play.events, session=play.session)


def _planned(spec: StreamSpec, settings: Settings, *, model: ModelInfo) -> StreamSpec:
    sampling = spec.sampling
    horizons_s = plan_horizons(
        spec.horizons_s,
        mode=spec.mode,
        frames=sampling.frames,
        fps=sampling.fps,
        tubelet=model.tubelet,
        trained_frames=model.trained_frames,
        context=settings.serving.rollout.context_tubelets,
    )
    return replace(spec, horizons_s=horizons_s)


def _with_pictures(settings: Settings, *, enabled: bool) -> Settings:
    pictures = replace(settings.serving.pictures, enabled=enabled)
    return settings.model_copy(update={"serving": replace(settings.serving, pictures=pictures)})


class _Illustrating:
    """A `Pipeline` that has a picture made of each clip before the clip is done."""

    def __init__(self, pipeline: LocalPipeline, illustrate: Illustrate) -> None:
        self._pipeline = pipeline
        self._illustrate = illustrate
        self._frames: dict[int, Pixels] = {}
        """Last frame of each clip between its two calls."""

    async def encode(self, clip: Clip) -> Encoded:
        self._frames[clip.index] = clip.frames[-1]
        return await self._pipeline.encode(clip)

    async def anticipate(self, encoded: Encoded, request: AnticipationRequest) -> AnticipationReply:
        reply = await self._pipeline.anticipate(encoded, request)
        illustration = Illustration(
            seq=reply.seq,
            frame=self._frames.pop(request.clip),
            panels=await self._pipeline.draw(encoded, reply),
        )
        await asyncio.to_thread(self._illustrate, illustration)
        return reply

    async def supersede(self, stream: str, clip: int) -> None:
        await self._pipeline.supersede(stream, clip)


def _policy(path: Path) -> SourcePolicy:
    """The person at the keyboard may read what she names, and nothing beside it."""
    return SourcePolicy(schemes=(), allow_files=(str(path.resolve().parent),))
