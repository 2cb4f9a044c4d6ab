"""Whether the model that the settings name reaches their horizons, as far as a file tells."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from streamer.doctor.finding import Finding, failed, ok
from streamer.errors import StreamerError
from streamer.reach import check_defaults
from streamer.settings import TracedSettings

if TYPE_CHECKING:
    from streamer.models.config import VJepa2Config

__all__ = ["check_horizons"]


def check_horizons(traced: TracedSettings) -> Finding | None:
    """None where nothing is known before the model is fetched; `check_model` says so."""
    settings = traced.settings
    try:
        config = _config(settings.model.name)
    except (StreamerError, ImportError, OSError):  # the check of the model tells of these
        return None
    if config is None:
        return None
    try:
        check_defaults(
            settings,
            tubelet=config.tubelet_size,
            trained_frames=config.frames_per_clip,
            origin=_origin(traced),
        )
    except StreamerError as error:
        return failed("horizons", error, fix="Correct horizons_s.")
    shown = ", ".join(f"{each:g}" for each in settings.horizons_s)
    return ok("horizons", f"{shown} s, within reach")


def _config(name: str) -> VJepa2Config | None:
    from streamer.models.config import PRESETS, VJepa2Config
    from streamer.models.folder import read_json

    if name in PRESETS:
        return PRESETS[name]
    file = Path(name) / "config.json"
    return VJepa2Config.from_dict(read_json(file)) if file.is_file() else None


def _origin(traced: TracedSettings) -> str:
    origin = traced.origins.get("horizons_s", "default")
    if origin == "file" and traced.file is not None:
        return f"file {traced.file}"
    return {"env": "STREAMER_HORIZONS_S", "option": "option"}.get(origin, "default")
