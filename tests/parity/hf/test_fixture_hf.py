"""Outputs and folders of transformers, and the same weights under upstream names."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from streamer.models.config import VJepa2Config
from streamer.models.keys import key_pairs, to_hf, to_ours
from streamer.models.pooler import AttentiveClassifier
from streamer.models.probe_config import PROBE_EPS, ProbeConfig
from streamer.models.vjepa2 import VJepa2

pytestmark = pytest.mark.parity


def _config(values: dict) -> VJepa2Config:
    values = dict(values)
    values.pop("transformers", None)
    labels = {str(i): f"LABEL_{i}" for i in range(values.pop("num_labels"))}
    architectures = ["VJEPA2ForVideoClassification"]
    return VJepa2Config.from_dict({**values, "id2label": labels, "architectures": architectures})


@pytest.fixture(scope="module")
def classification(published):
    file = published("hf_video_classification")
    model = VJepa2(_config(file.config))
    pairs = key_pairs(model.state_dict(), prefixed=True)
    model.load_state_dict(to_ours(pairs, file.weights.__getitem__), strict=True)
    return file, model.eval()


@torch.inference_mode()
def test_encoder_and_classifier(classification, same) -> None:
    file, model = classification
    pixels = file.given["pixel_values_videos"].transpose(1, 2)
    tokens = model.encoder(pixels)
    same(tokens, file.expected["last_hidden_state"])
    same(model.classifier(tokens), file.expected["logits"])
    same(model.classifier(file.given["small_tokens"]), file.expected["logits_small"])
    single = model.encoder(pixels[:, :, :1])
    same(single, file.expected["last_hidden_state_single_frame"])


@torch.inference_mode()
def test_upstream_epsilon_of_the_same_classifier(classification, same) -> None:
    file, model = classification
    probe = AttentiveClassifier(
        replace(ProbeConfig.of_model(model.config), layer_norm_eps=PROBE_EPS)
    )
    probe.load_state_dict(model.classifier.state_dict())
    found = probe(file.expected["last_hidden_state"])
    same(found, file.expected["upstream_logits_eps1e-5"])


@torch.inference_mode()
def test_predictor(classification, same) -> None:
    file, model = classification
    tokens = file.expected["last_hidden_state"]
    every = torch.arange(tokens.shape[1]).expand(tokens.shape[0], -1)
    same(model.predictor(tokens, every, every), file.expected["predictor_default"])
    context, target = file.given["context_mask"], file.given["target_mask"]
    width = tokens.shape[-1]
    kept = tokens.gather(1, context.unsqueeze(-1).expand(-1, -1, width))
    same(kept, file.expected["masked_hidden_state"], atol=0, rtol=0)
    same(model.predictor(kept, context, target), file.expected["predictor_masked"])
    same(
        model.predictor(tokens, every, file.given["future_mask"]),
        file.expected["predictor_future"],
    )


@torch.inference_mode()
def test_folders(parity_dir, published, same) -> None:
    file = published("hf_folder_expected")
    pixels = file.given["pixel_values_videos"].transpose(1, 2)
    model = VJepa2.from_pretrained(parity_dir / "hf_folder")
    tokens = model.encoder(pixels)
    every = torch.arange(tokens.shape[1]).expand(tokens.shape[0], -1)
    same(tokens, file.expected["base.last_hidden_state"])
    same(model.predictor(tokens, every, every), file.expected["base.predictor_default"])
    assert model.trained
    assert model.classifier is None
    classifier = VJepa2.from_pretrained(parity_dir / "hf_folder_cls")
    assert classifier.classifier is not None
    same(classifier.classifier(classifier.encoder(pixels)), file.expected["cls.logits"])


@torch.inference_mode()
def test_folder_in_two_shards(parity_dir, published, same, tmp_path) -> None:
    tensors = load_file(parity_dir / "hf_folder" / "model.safetensors")
    names = sorted(tensors)
    weight_map = {}
    for part in range(2):
        shard = f"model-0000{part + 1}-of-00002.safetensors"
        held = {name: tensors[name] for name in names[part::2]}
        save_file(held, tmp_path / shard, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(held, shard)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    config = (parity_dir / "hf_folder" / "config.json").read_text()
    (tmp_path / "config.json").write_text(config)
    file = published("hf_folder_expected")
    tokens = VJepa2.from_pretrained(tmp_path).encoder(
        file.given["pixel_values_videos"].transpose(1, 2)
    )
    same(tokens, file.expected["base.last_hidden_state"])


@pytest.mark.parametrize(
    ("folder", "name", "parts"),
    [
        ("hf_folder", "base", {"encoder": "encoder", "predictor": "predictor"}),
        (
            "hf_folder_cls",
            "cls",
            {"encoder": "encoder", "predictor": "predictor", "probe": "classifier"},
        ),
    ],
)
def test_names_both_ways(parity_dir, published, folder, name, parts) -> None:
    upstream = {
        f"{parts[key.split('.')[1]]}.{key.split('.', 2)[2]}": tensor
        for key, tensor in published("hf_to_upstream").weights.items()
        if key.startswith(f"{name}.")
    }
    model = VJepa2.from_pretrained(parity_dir / folder)
    ours = model.state_dict()
    assert ours.keys() == upstream.keys()
    assert all(torch.equal(ours[key], upstream[key]) for key in ours)
    theirs = load_file(parity_dir / folder / "model.safetensors")
    pairs = key_pairs(upstream, prefixed=model.config.has_classifier)
    back = to_hf(pairs, upstream)
    assert back.keys() == theirs.keys()
    assert all(torch.equal(back[key], theirs[key]) for key in theirs)


def test_config_keeps_what_the_folder_says(parity_dir) -> None:
    for folder in ("hf_folder", "hf_folder_cls"):
        values = json.loads((parity_dir / folder / "config.json").read_text())
        found = VJepa2Config.from_dict(values).to_dict()
        for dropped in ("dtype", "torch_dtype", "transformers_version"):
            values.pop(dropped, None)
        assert found == values
