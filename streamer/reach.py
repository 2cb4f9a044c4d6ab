"""Whether the served model can do what a stream gets where it does not say."""

from __future__ import annotations

from streamer.clips.config import ClipConfig
from streamer.errors import ConfigError, HorizonUnreachable
from streamer.futures.config import plan_horizons
from streamer.settings import Settings

__all__ = ["check_defaults"]


def check_defaults(
    settings: Settings, *, tubelet: int, trained_frames: int, origin: str = ""
) -> None:
    """At the start, instead of with each stream of somebody who never named a horizon or a stride.

    Args:
        tubelet: frames per tubelet of the model.
        trained_frames: frames per clip that it was trained on.
        origin: where `horizons_s` comes from, as one would say it: ``file bad.yaml``.

    Raises:
        ConfigError: clips or strides that do not fit the model, or a horizon out of reach, with
            the largest one.
    """
    sampling = settings.sampling
    ClipConfig(
        frames=sampling.frames, fps=sampling.fps, stride_s=sampling.stride_s, tubelet=tubelet
    )
    try:
        plan_horizons(
            settings.horizons_s,
            mode=settings.mode,
            frames=sampling.frames,
            fps=sampling.fps,
            tubelet=tubelet,
            trained_frames=trained_frames,
            context=settings.serving.rollout.context_tubelets,
        )
    except HorizonUnreachable as error:
        place = f" ({origin})" if origin else ""
        raise ConfigError(
            f"horizons_s{place} holds {max(settings.horizons_s):g}; {settings.model.name} with"
            f" {sampling.frames} frames at {sampling.fps:g} fps reaches {error.largest_s:g} s in"
            f" {settings.mode} mode. Leave out what is further, or change sampling."
        ) from error
