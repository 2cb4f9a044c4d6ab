"""A model small enough for a unit test, and its files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from streamer.models.config import VJepa2Config
from streamer.models.initialise import initialise
from streamer.models.pooler import build_probe
from streamer.models.probe_config import ProbeConfig
from streamer.models.vjepa2 import VJepa2

CONFIG = VJepa2Config(
    patch_size=8,
    crop_size=16,
    frames_per_clip=4,
    hidden_size=48,
    num_hidden_layers=2,
    num_attention_heads=2,
    pred_hidden_size=32,
    pred_num_hidden_layers=1,
    pred_num_attention_heads=1,
    pred_num_mask_tokens=3,
    num_pooler_layers=1,
)


@pytest.fixture
def config() -> VJepa2Config:
    return CONFIG


@pytest.fixture
def make_model() -> Callable[..., VJepa2]:
    def make(**changes: object) -> VJepa2:
        model = VJepa2(replace(CONFIG, **changes), name="small")
        initialise(model, seed=1, std=0.2)
        with torch.no_grad():
            for i, token in enumerate(model.predictor.mask_tokens):
                token.fill_(0.1 * i)
        return model.eval()

    return make


@pytest.fixture
def model(make_model: Callable[..., VJepa2]) -> VJepa2:
    return make_model()


@pytest.fixture
def folder(model: VJepa2, tmp_path: Path) -> Path:
    model.save_pretrained(tmp_path / "saved")
    return tmp_path / "saved"


def _wrapped(module: torch.nn.Module, prefix: str) -> dict[str, torch.Tensor]:
    return {prefix + key: tensor for key, tensor in module.state_dict().items()}


@pytest.fixture
def upstream_pt(make_model: Callable[..., VJepa2], tmp_path: Path) -> Path:
    """Encoder and target encoder differ; a stale position table is in the way."""
    first, second = make_model(), make_model()
    initialise(second.encoder, seed=2, std=0.2)
    encoder = _wrapped(first.encoder, "module.backbone.")
    encoder["module.backbone.pos_embed"] = torch.zeros(1, 8, 48)
    path = tmp_path / "small.pt"
    content = {
        "encoder": encoder,
        "target_encoder": _wrapped(second.encoder, "module.backbone."),
        "predictor": _wrapped(first.predictor, "module.backbone."),
        "opt": None,
        "epoch": 3,
    }
    torch.save(content, path)
    return path


@pytest.fixture
def probe_pt(tmp_path: Path) -> Path:
    config = ProbeConfig(
        hidden_size=48,
        num_attention_heads=4,
        depth=2,
        num_queries=3,
        num_verbs=3,
        num_nouns=4,
        num_actions=5,
    )
    probe = build_probe(config)
    initialise(probe, seed=4, std=0.2)
    path = tmp_path / "probe.pt"
    torch.save({"classifiers": [_wrapped(probe, "module.")], "epoch": 1}, path)
    return path
