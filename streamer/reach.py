"""Whether the served model reaches the horizons that a stream gets where it names none."""

from __future__ import annotations

from streamer.errors import ConfigError, HorizonUnreachable
from streamer.futures.config import plan_horizons
from streamer.settings import Settings

__all__ = ["check_default_horizons"]


def check_default_horizons(
    settings: Settings, *, tubelet: int, trained_frames: int, origin: str = ""
) -> None:
    """At the start, instead of with each stream of somebody who never named a horizon.

    Args:
        tubelet: frames per tubelet of the model.
        trained_frames: frames per clip that it was trained on.
        origin: where `horizons_s` comes from, as one would say it: ``file bad.yaml``.

    Raises:
        ConfigError: with the largest horizon that can be reached.
    """
    sampling = settings.sampling
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
