"""What can be told before Ray starts, which takes seconds. Imports no ray."""

from __future__ import annotations

import difflib
import socket
from pathlib import Path

from streamer.errors import ConfigError, NotFound
from streamer.gateway.auth import check_exposure
from streamer.models.config import PRESETS
from streamer.models.hub import is_hub_id
from streamer.reach import check_defaults
from streamer.settings import Settings

__all__ = ["check_model_name", "preflight", "usable_port"]


def preflight(settings: Settings) -> int:
    """The port to listen on.

    Raises:
        ConfigError: the port is taken, strangers could call, or a preset does not reach the
            horizons of the settings.
        NotFound: the model's name is none.
    """
    check_exposure(
        settings.server.host,
        has_tokens=bool(settings.gateway.tokens_file),
        allow_anonymous=settings.server.allow_anonymous,
    )
    check_model_name(settings.model.name)
    if (preset := PRESETS.get(settings.model.name)) is not None:
        check_defaults(settings, tubelet=preset.tubelet_size, trained_frames=preset.frames_per_clip)
    return usable_port(settings.server.host, settings.server.port)


def usable_port(host: str, port: int) -> int:
    """The port itself, or a free one for 0. Raises `ConfigError` when it cannot be had."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            return int(probe.getsockname()[1])
    except OSError as error:
        raise ConfigError(
            f"Port {port} of {host} cannot be used: {error.strerror or error}. Choose another"
            " with --port, or end what listens there."
        ) from error


def check_model_name(name: str) -> None:
    """The likeliest mistake, told early; whether it loads is seen in the replicas.

    Raises `NotFound`.
    """
    if name in PRESETS or Path(name).exists() or is_hub_id(name):
        return
    near = difflib.get_close_matches(name, PRESETS, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise NotFound(
        f"Model {name!r} is no preset ({', '.join(PRESETS)}), no folder and no hub id.{hint}"
    )
