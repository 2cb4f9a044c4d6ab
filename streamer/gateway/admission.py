"""A request for a stream -> what is registered: checked, and with every default filled in."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from streamer.clips.config import ClipConfig
from streamer.errors import CapacityError, ConfigError, HorizonUnreachable
from streamer.futures.config import plan_horizons
from streamer.gateway.backend import Backend
from streamer.gateway.config import GatewayConfig
from streamer.gateway.presence import choose_model
from streamer.gateway.schema import StreamCreate, StreamPatch
from streamer.records import ModelInfo, Sampling, StreamSpec
from streamer.sources.options import check_options
from streamer.sources.policy import SourcePolicy

__all__ = ["admit", "check_within", "plan", "readmit"]

_POLICY_TIMEOUT_S = 10.0


async def admit(backend: Backend, request: StreamCreate) -> StreamSpec:
    """Check everything that can be checked before a session tries. Safe to cancel.

    Raises:
        ConfigError: a value is out of its bounds, an option of the source is unknown, or the stride
            is no multiple of the tubelet.
        SourceForbidden: the source policy says no.
        SourceUnavailable: the source's name does not resolve.
        NotFound: no such model is served.
        CapacityError: no model is loaded yet.
        HorizonUnreachable: a horizon is too far away.
    """
    planned = await plan(backend, request)
    await _check_source(backend.policy, planned.source)
    return planned


async def plan(backend: Backend, request: StreamCreate) -> StreamSpec:
    """The same without a look at the source. Safe to cancel; raises as `admit`."""
    return await _planned(backend, request, base=backend.defaults)


async def readmit(backend: Backend, request: StreamPatch, *, spec: StreamSpec) -> StreamSpec:
    """Check a change of a registered stream: the whole of what comes out, but of the source only
    another one. Safe to cancel; raises as `admit`."""
    planned = await _planned(backend, request, base=spec)
    if request.source is not None:
        await _check_source(backend.policy, planned.source)
    return planned


async def _planned(
    backend: Backend, request: StreamCreate | StreamPatch, *, base: StreamSpec
) -> StreamSpec:
    asked = _filled(request, base)
    _check_bounds(asked, backend.config)
    model = await choose_model(backend.store, asked.model)
    sampling = _sampling(request, model, base=base.sampling, config=backend.config)
    try:
        horizons_s = plan_horizons(
            asked.horizons_s,
            mode=asked.mode,
            frames=sampling.frames,
            fps=sampling.fps,
            tubelet=model.tubelet,
            trained_frames=model.trained_frames,
        )
    except HorizonUnreachable as error:
        if request.horizons_s is not None:
            raise
        whose = "the stream's" if isinstance(request, StreamPatch) else "this server's default"
        raise HorizonUnreachable(
            f"{error} That is {whose}; give horizons_s.", error.largest_s
        ) from error
    return replace(asked, horizons_s=horizons_s, sampling=sampling)


def _filled(request: StreamCreate | StreamPatch, base: StreamSpec) -> StreamSpec:
    """What was asked for, with the base where nothing was said; sampling comes later."""
    horizons_s = request.horizons_s
    return replace(
        base,
        source=base.source if request.source is None else request.source,
        model=base.model if request.model is None else request.model,
        mode=base.mode if request.mode is None else request.mode,
        horizons_s=base.horizons_s if horizons_s is None else tuple(horizons_s),
        retain_s=base.retain_s if request.retain_s is None else request.retain_s,
    )


def _check_bounds(spec: StreamSpec, config: GatewayConfig) -> None:
    if len(spec.horizons_s) > config.max_horizons:
        raise ConfigError(
            f"horizons_s has {len(spec.horizons_s)} entries; at most"
            f" {config.max_horizons} are allowed."
        )
    if spec.retain_s > config.max_retain_s:
        raise ConfigError(
            f"retain_s is {spec.retain_s:g}; at most {config.max_retain_s:g} is allowed."
        )


def _sampling(
    request: StreamCreate | StreamPatch, model: ModelInfo, *, base: Sampling, config: GatewayConfig
) -> Sampling:
    asked = request.sampling
    sampling = Sampling(
        frames=min(base.frames, model.trained_frames) if asked.frames is None else asked.frames,
        fps=base.fps if asked.fps is None else asked.fps,
        stride_s=base.stride_s if asked.stride_s is None else asked.stride_s,
    )
    if sampling.frames > model.trained_frames:
        raise ConfigError(
            f"sampling.frames is {sampling.frames}; model {model.name} was built for"
            f" {model.trained_frames}."
        )
    check_within("sampling.fps", sampling.fps, config.min_fps, config.max_fps)
    check_within("sampling.stride_s", sampling.stride_s, config.min_stride_s, config.max_stride_s)
    ClipConfig(
        frames=sampling.frames,
        fps=sampling.fps,
        stride_s=sampling.stride_s,
        tubelet=model.tubelet,
    )
    return sampling


def check_within(name: str, value: float, low: float, high: float) -> None:
    """Raises `ConfigError` for a value out of bounds."""
    if not low <= value <= high:
        raise ConfigError(f"{name} is {value:g}; choose from {low:g} to {high:g}.")


async def _check_source(policy: SourcePolicy, source: str) -> None:
    """The policy resolves names, which blocks: in a thread, and not for ever."""
    try:
        async with asyncio.timeout(_POLICY_TIMEOUT_S):
            await asyncio.to_thread(policy.check, source)
    except TimeoutError as error:
        raise CapacityError(
            "The name service did not answer in time for the source's host name.", 5.0
        ) from error
    check_options(source)
