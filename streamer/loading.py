"""Settings -> a model on its device -> a warm pipeline. The slow part of every start."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import torch

from streamer.clips.config import check_frames
from streamer.clock import monotonic_ns
from streamer.errors import ConfigError
from streamer.models.vjepa2 import VJepa2, load_model
from streamer.reach import check_defaults
from streamer.serving.local import LocalPipeline
from streamer.settings import Settings
from streamer.store.protocol import Store
from streamer.telemetry import Meter

__all__ = ["load_served_model", "opened_pipeline", "resolve_device"]

_LOG = logging.getLogger(__name__)


def resolve_device(name: str) -> str:
    """What `model.device` means on this machine.

    Raises:
        ConfigError: no such device here.
    """
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"model.device {name!r} does not work here: {reason}") from error
    return name


def load_served_model(settings: Settings) -> VJepa2:
    """Load the model that `settings.model` names. Blocks for seconds: use a thread.

    Raises:
        NotFound: no such model.
        ConfigError: no such device, or default clips and horizons that the model cannot do.
        CheckpointError: its files do not hold what they should.
    """
    device = resolve_device(settings.model.device)
    model = load_model(settings.model.name, device=device, revision=settings.model.revision)
    # Before anybody warms it up: that would take the memory for such a clip.
    check_frames(settings.sampling.frames, trained_frames=model.config.frames_per_clip)
    check_defaults(
        settings,
        tubelet=model.config.tubelet_size,
        trained_frames=model.config.frames_per_clip,
    )
    return model


@asynccontextmanager
async def opened_pipeline(
    settings: Settings, *, store: Store, meter: Meter | None = None
) -> AsyncIterator[LocalPipeline]:
    """A pipeline in this process, warmed up for the settings' sampling.

    Raises: as `load_served_model`.
    """
    began_ns = monotonic_ns()
    model = await asyncio.to_thread(load_served_model, settings)
    pipeline = LocalPipeline(
        model,
        store=store,
        config=settings.serving_config(device=resolve_device(settings.model.device)),
        meter=meter,
    )
    try:
        await pipeline.warm_up(frames=settings.sampling.frames)
        facts = {"model": pipeline.info.name, "fingerprint": pipeline.info.fingerprint}
        _LOG.info("model ready", extra=facts | {"seconds": (monotonic_ns() - began_ns) / 1e9})
        yield pipeline
    finally:
        await pipeline.close()
