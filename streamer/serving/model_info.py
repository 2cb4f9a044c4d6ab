"""What a served model tells the rest of the service."""

from __future__ import annotations

from streamer.models.vjepa2 import VJepa2
from streamer.records import ModelInfo

__all__ = ["model_info"]


def model_info(model: VJepa2, *, dtype: str) -> ModelInfo:
    """Facts of a loaded model.

    Args:
        dtype: what it computes in, as configured.
    """
    config = model.config
    return ModelInfo(
        name=model.name,
        fingerprint=model.fingerprint,
        trained=model.trained,
        crop=config.crop_size,
        tubelet=config.tubelet_size,
        patch=config.patch_size,
        trained_frames=config.frames_per_clip,
        dtype=dtype,
        config=config.to_dict(),
    )
