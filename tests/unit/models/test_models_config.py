"""Configs: round trip, unknown keys, sizes that cannot work."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from streamer.errors import ConfigError
from streamer.models.config import PRESETS, VJepa2Config
from streamer.models.probe_config import ProbeConfig

pytestmark = pytest.mark.unit

HUB_CONFIG = {
    "architectures": ["VJEPA2Model"],
    "attention_dropout": 0.0,
    "crop_size": 256,
    "frames_per_clip": 64,
    "hidden_act": "gelu",
    "hidden_size": 1408,
    "image_size": 256,
    "mlp_ratio": 4.363636363636363,
    "model_type": "vjepa2",
    "num_attention_heads": 22,
    "num_hidden_layers": 40,
    "patch_size": 16,
    "pred_num_mask_tokens": 10,
    "torch_dtype": "float32",
    "transformers_version": "4.53.0.dev0",
    "tubelet_size": 2,
    "use_SiLU": False,
    "wide_SiLU": True,
}


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_json_round_trip_is_exact(name: str) -> None:
    config = PRESETS[name]
    assert VJepa2Config.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_our_own_keys_round_trip_and_are_written_only_when_set(config: VJepa2Config) -> None:
    ours = {
        "mask_index": 0,
        "rope": "interleaved",
        "use_silu": True,
        "wide_silu": False,
        "pred_use_silu": True,
        "trained": False,
    }
    assert not ours.keys() & config.to_dict().keys()
    changed = replace(config, id2label={0: "open", 1: "close"}, **ours)
    values = json.loads(json.dumps(changed.to_dict()))
    assert values.items() >= ours.items()
    assert VJepa2Config.from_dict(values) == changed
    assert changed.num_labels == 2


def test_a_config_of_the_hub_is_the_preset() -> None:
    assert VJepa2Config.from_dict(HUB_CONFIG) == PRESETS["vitg"]
    assert int(PRESETS["vitg"].hidden_size * PRESETS["vitg"].mlp_ratio) == 6144


def test_patch_size_may_be_a_square() -> None:
    assert VJepa2Config.from_dict({"patch_size": [16, 16]}).patch_size == 16


def test_unknown_key_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"'hiden_size' \(did you mean 'hidden_size'\?\)"):
        VJepa2Config.from_dict({"hiden_size": 64})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"hidden_size": "64"}, "must be of type int"),
        ({"hidden_size": True}, "must be of type int"),
        ({"qkv_bias": 1}, "must be of type bool"),
        ({"mlp_ratio": "4"}, "must be of type float"),
        ({"layer_norm_eps": 0}, "above 0"),
        ({"patch_size": [16, 8]}, "must be of type int"),
        ({"hidden_size": 0}, "too small"),
        ({"num_hidden_layers": 10**7}, "at most 512"),
        ({"crop_size": 10**6}, "at most 2048"),
        ({"mlp_ratio": 1e300}, "at most 32"),
        ({"mask_index": -1}, "too small"),
        ({"num_attention_heads": 15}, "does not divide"),
        ({"pred_num_attention_heads": 48}, "8 channels per head"),
        ({"crop_size": 250}, "multiple of patch_size"),
        ({"frames_per_clip": 1}, "shorter than one tubelet"),
        ({"model_type": "vit"}, "model_type"),
        ({"rope": "half"}, "interleaved"),
        ({"hidden_act": "relu"}, "hidden_act"),
        ({"id2label": {"0": "a", "2": "b"}}, "without holes"),
        ({"id2label": ["a"]}, "id2label"),
        ({"architectures": "VJEPA2Model"}, "list of names"),
    ],
)
def test_values_that_cannot_work(values: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        VJepa2Config.from_dict(values)


def test_what_transformers_can_express(config: VJepa2Config) -> None:
    assert config.is_hf_expressible
    for change in ({"rope": "interleaved"}, {"mask_index": 0}, {"use_silu": True}):
        assert not replace(config, **change).is_hf_expressible


def test_probe_config_round_trip() -> None:
    config = ProbeConfig(hidden_size=32, num_attention_heads=2, num_labels=5)
    assert ProbeConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"hidden_size": 32},
        {"hidden_size": 32, "num_labels": 3, "num_actions": 4},
        {"hidden_size": 30, "num_labels": 3},
        {"hidden_size": 32, "num_actions": 4, "num_verbs": 2, "num_queries": 3},
        {"hidden_size": 32, "num_actions": 4, "num_queries": 2},
        {"hidden_size": 32, "num_labels": "3"},
        {"hidden_size": 32, "num_labels": 3, "model_type": "vjepa2"},
        {"hidden_size": 32, "num_labels": 3, "depht": 2},
    ],
)
def test_probe_configs_that_cannot_work(values: dict) -> None:
    with pytest.raises(ConfigError):
        ProbeConfig.from_dict(values)
