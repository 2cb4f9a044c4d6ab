"""The container: encoder, masked predictor, and the classifier where a checkpoint has one."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn

from streamer.errors import NotFound
from streamer.models.config import PRESETS, VJepa2Config
from streamer.models.encoder import Encoder
from streamer.models.fingerprint import fingerprint
from streamer.models.initialise import initialise
from streamer.models.pooler import AttentiveClassifier
from streamer.models.predictor import Predictor
from streamer.models.probe_config import ProbeConfig

__all__ = ["VJepa2"]


class VJepa2(nn.Module):
    """A V-JEPA 2 checkpoint in memory. Use the constructors `from_*`."""

    def __init__(self, config: VJepa2Config, *, name: str = "") -> None:
        super().__init__()
        self.config = config
        self.name = name
        self.encoder = Encoder(config)
        self.predictor = Predictor(config)
        self.classifier: AttentiveClassifier | None = (
            AttentiveClassifier(ProbeConfig.of_model(config)) if config.has_classifier else None
        )
        self._fingerprint = ""

    @property
    def trained(self) -> bool:
        """False when the weights are random."""
        return self.config.trained

    @property
    def fingerprint(self) -> str:
        """12 hex digits of encoder weights (as held, dtype included), crop and tubelet.

        Made once, on first use; a model whose weights change afterwards keeps its old one until
        it is saved and loaded again.
        """
        if not self._fingerprint:
            self._fingerprint = fingerprint(
                self.encoder.state_dict(),
                crop=self.config.crop_size,
                tubelet=self.config.tubelet_size,
            )
        return self._fingerprint

    @classmethod
    def from_preset(
        cls,
        name: str,
        *,
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
        device: str | torch.device = "cpu",
    ) -> VJepa2:
        """A model of known sizes with random weights; `trained` is false.

        Raises:
            NotFound: no such preset.
        """
        if name not in PRESETS:
            raise NotFound(f"There is no preset {name!r}; there are {', '.join(PRESETS)}.")
        with torch.device("meta"):
            model = cls(replace(PRESETS[name], trained=False), name=name)
        model.to_empty(device="cpu")
        initialise(model, seed=seed, std=model.config.initializer_range)
        return model.to(device=device, dtype=dtype).eval()
