"""What a served model tells the rest of the service."""

from __future__ import annotations

from streamer.models.config import VJepa2Config
from streamer.models.vjepa2 import VJepa2
from streamer.records import ModelInfo

__all__ = ["CLASSIFIER", "model_info"]

CLASSIFIER = "classifier"
"""Name of the label head inside a Hugging Face video classification checkpoint."""


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
        heads=_heads(config),
    )


def _heads(config: VJepa2Config) -> dict[str, dict[int, str]]:
    """A video classification checkpoint has one; where its labels have no names they are called as
    transformers calls them."""
    if not config.has_classifier:
        return {}
    return {CLASSIFIER: {i: config.id2label.get(i, f"LABEL_{i}") for i in range(config.num_labels)}}
