"""Worlds by name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from streamer.errors import ConfigError
from streamer.worlds.bounce import Bounce
from streamer.worlds.drift import Drift
from streamer.worlds.pulse import Pulse
from streamer.worlds.world import Stage, World
from streamer.worlds.yard import Yard
from streamer.worlds.zone import Zone

__all__ = ["WORLDS", "WorldMaker", "make_world"]


class WorldMaker(Protocol):
    """Builds one kind of world."""

    def __call__(self, *, seed: int, stage: Stage) -> World:
        """Same seed and stage, same world, on every machine."""


WORLDS: Mapping[str, WorldMaker] = MappingProxyType(
    {"bounce": Bounce, "drift": Drift, "pulse": Pulse, "yard": Yard, "zone": Zone}
)


def make_world(name: str, *, seed: int = 0, stage: Stage | None = None) -> World:
    """The world of this name.

    Args:
        seed: 0 or more; another seed is another scene of the same kind.
        stage: size and rate; None: 96 x 96 pixels at 15 pictures per second.

    Raises:
        ConfigError: no such world, or a negative seed.
    """
    maker = WORLDS.get(name)
    if maker is None:
        near = difflib.get_close_matches(name, WORLDS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ConfigError(f"There is no world {name!r}; {hint}Known: {', '.join(WORLDS)}.")
    if seed < 0:
        raise ConfigError(f"seed is {seed}; it must be 0 or more.")
    return maker(seed=seed, stage=stage or Stage())
