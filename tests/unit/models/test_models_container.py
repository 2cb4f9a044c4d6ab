"""`VJepa2`: presets, folders, names, fingerprints, and damaged files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx2
import huggingface_hub
import pytest
import torch
from huggingface_hub import errors
from safetensors.torch import load_file, save_file

from streamer.errors import CheckpointError, ConfigError, NotFound
from streamer.models.vjepa2 import VJepa2, load_model

pytestmark = pytest.mark.unit


def _edit(folder: Path, change) -> None:
    path = folder / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path, metadata={"format": "pt"})


def test_tiny_is_the_same_for_the_same_seed() -> None:
    state = torch.random.get_rng_state()
    first, again = VJepa2.from_preset("tiny"), load_model("tiny")
    assert torch.equal(torch.random.get_rng_state(), state)
    assert first.fingerprint == again.fingerprint
    assert re.fullmatch(r"[0-9a-f]{12}", first.fingerprint)
    assert load_model("tiny", seed=1).fingerprint != first.fingerprint
    assert (first.name, first.trained, first.training) == ("tiny", False, False)


@torch.inference_mode()
def test_tiny_sees_its_input() -> None:
    model = load_model("tiny")
    clips = torch.randn(2, 3, 4, 64, 64, generator=torch.Generator().manual_seed(0))
    one, two = model.encoder(clips)
    assert one.shape == (32, 192)
    assert (one - two).abs().mean() > 0.1


def test_fingerprint_knows_weights_crop_and_dtype(make_model) -> None:
    marks = {
        make_model().fingerprint,
        make_model(crop_size=24).fingerprint,
        make_model().bfloat16().fingerprint,
    }
    assert len(marks) == 3
    assert make_model(mask_index=0).fingerprint == make_model().fingerprint


@pytest.mark.parametrize(
    ("changes", "model_type"),
    [
        ({}, "vjepa2"),
        ({"architectures": ("VJEPA2ForVideoClassification",)}, "vjepa2"),
        ({"trained": False}, "vjepa2"),
        ({"qkv_bias": False}, "vjepa2"),
        ({"rope": "interleaved", "mask_index": 0}, "streamer_vjepa2"),
        ({"use_silu": True, "pred_use_silu": True}, "streamer_vjepa2"),
    ],
)
def test_saved_folder_is_the_same_model(make_model, tmp_path, changes, model_type) -> None:
    model = make_model(**changes)
    model.save_pretrained(tmp_path / "folder")
    written = json.loads((tmp_path / "folder" / "config.json").read_text())
    assert written["model_type"] == model_type
    assert ("trained" in written) == (not model.trained)
    again = VJepa2.from_pretrained(tmp_path / "folder")
    assert (again.trained, again.name) == (model.trained, "folder")
    assert again.fingerprint == model.fingerprint
    found, expected = again.state_dict(), model.state_dict()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[key], expected[key]) for key in found)
    assert not list((tmp_path / "folder").glob("*.partial"))


def test_dtype_is_the_callers(folder: Path) -> None:
    model = VJepa2.from_pretrained(folder, dtype=torch.bfloat16)
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}
    model.save_pretrained(folder)
    assert VJepa2.from_pretrained(folder).encoder.norm.weight.dtype == torch.float32
    with pytest.raises(ConfigError, match="cannot be held as"):
        VJepa2.from_pretrained(folder, dtype=torch.int8)
    with pytest.raises(ConfigError, match="cannot be held as"):
        VJepa2.from_preset("tiny", dtype=torch.int8)


def test_keys_are_strict_and_named(folder: Path) -> None:
    def spoil(tensors: dict[str, torch.Tensor]) -> None:
        del tensors["encoder.layer.1.attention.key.bias"]
        tensors["encoder.layer.9.norm1.bias"] = torch.zeros(48)
        tensors["predictor.embeddings.mask_tokens"] = torch.zeros(2, 1, 1, 32)

    _edit(folder, spoil)
    with pytest.raises(CheckpointError) as caught:
        VJepa2.from_pretrained(folder)
    message = str(caught.value)
    assert "1 missing: encoder.layer.1.attention.key.bias" in message
    assert "1 unexpected: encoder.layer.9.norm1.bias" in message
    assert "mask_tokens is [2, 1, 1, 32], should be [3, 1, 1, 32]" in message


def test_many_wrong_keys_are_counted_not_all_listed(folder: Path) -> None:
    def spoil(tensors: dict[str, torch.Tensor]) -> None:
        for key in [key for key in tensors if key.startswith("encoder.layer.0")]:
            del tensors[key]

    _edit(folder, spoil)
    with pytest.raises(CheckpointError, match=r"16 missing: .*, and 8 more"):
        VJepa2.from_pretrained(folder)


def test_classification_without_architectures_is_told_by_its_keys(make_model, tmp_path) -> None:
    make_model(architectures=("VJEPA2ForVideoClassification",)).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    values = json.loads(path.read_text())
    path.write_text(json.dumps(values | {"architectures": None}))
    assert VJepa2.from_pretrained(tmp_path).classifier is not None


def test_truncated_weights(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match=r"Cannot read .*model\.safetensors"):
        VJepa2.from_pretrained(folder)


@pytest.mark.parametrize("content", ["{", "[]", None])
def test_config_that_is_none(folder: Path, content: str | None) -> None:
    path = folder / "config.json"
    path.unlink()
    if content is not None:
        path.write_text(content)
    with pytest.raises(CheckpointError, match=r"config\.json"):
        VJepa2.from_pretrained(folder)


def test_folder_without_weights(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "model.pth")
    with pytest.raises(CheckpointError, match=r"found: config\.json, model\.pth"):
        VJepa2.from_pretrained(folder)


@pytest.mark.parametrize("shard", ["model-2.safetensors", "../model.safetensors"])
def test_index_with_a_shard_that_is_not_there(folder: Path, shard: str) -> None:
    (folder.parent / "model.safetensors").write_bytes(b"")
    index = {"weight_map": {"encoder.layernorm.bias": shard}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match=f"lacks shards.*{re.escape(shard)}"):
        VJepa2.from_pretrained(folder)


def test_a_saved_model_replaces_shards_of_another(folder: Path, make_model) -> None:
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    keys = load_file(folder / "model-1.safetensors")
    index = {"weight_map": dict.fromkeys(keys, "model-1.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    before = VJepa2.from_pretrained(folder)
    model = make_model()
    torch.nn.init.ones_(model.encoder.norm.bias)
    model.save_pretrained(folder)
    assert VJepa2.from_pretrained(folder).fingerprint == model.fingerprint != before.fingerprint


def test_names_that_are_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="Did you mean 'tiny'"):
        load_model("tinny")
    with pytest.raises(NotFound):
        load_model(str(tmp_path / "none"))
    with pytest.raises(NotFound, match="no preset"):
        VJepa2.from_preset("vitx")
    file = tmp_path / "vitl.pt"
    file.touch()
    with pytest.raises(ConfigError, match="models convert"):
        load_model(str(file))


def _no_model() -> Exception:
    response = httpx2.Response(404, request=httpx2.Request("GET", "https://huggingface.co"))
    return errors.RepositoryNotFoundError("no", response=response)


@pytest.mark.parametrize(
    ("failure", "expected", "message"),
    [
        (lambda: errors.LocalEntryNotFoundError("offline"), CheckpointError, "Cannot fetch"),
        (lambda: ConnectionError("offline"), CheckpointError, "Cannot fetch"),
        (lambda: httpx2.ReadTimeout("slow"), CheckpointError, "Cannot fetch"),
        (_no_model, NotFound, "shows us no model"),
    ],
)
def test_hub_failures(monkeypatch, failure, expected, message) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise failure()

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    with pytest.raises(expected, match=message) as caught:
        load_model("owner/model")
    assert "owner/model" in str(caught.value)


def test_hub_model_keeps_its_id_as_name(monkeypatch, folder: Path) -> None:
    asked = {}

    def download(hub_id: str, **options: object) -> str:
        asked[hub_id] = options["revision"]
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert load_model("owner/model", revision="abc").name == "owner/model"
    assert asked == {"owner/model": "abc"}
