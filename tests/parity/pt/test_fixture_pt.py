"""Files in the layout of the original release."""

from __future__ import annotations

import pytest
import torch

from streamer.errors import CheckpointError
from streamer.models.conversion import SizeHints, convert
from streamer.models.inference import infer_config, infer_probe_config
from streamer.models.probe import load_probe, probe_from_upstream, probe_state
from streamer.models.upstream import choose_encoder, read_upstream
from streamer.models.vjepa2 import VJepa2

pytestmark = pytest.mark.parity


@pytest.fixture(scope="module")
def expected(published):
    return published("pt_expected")


def _hints(config: dict) -> dict[str, int]:
    return {
        "crop": config["encoder"]["img_size"][0],
        "frames": config["encoder"]["num_frames"],
        "heads": config["encoder"]["num_heads"],
        "pred_heads": config["predictor"]["num_heads"],
    }


def test_sizes_come_from_shapes(parity_dir, expected, sizes) -> None:
    file = read_upstream(parity_dir / "pt" / "vit_tiny.pt")
    _, encoder = choose_encoder(file)
    found = infer_config(encoder, file.entries["predictor"], **_hints(expected.config))
    assert found == sizes(expected.config["encoder"], expected.config["predictor"])


@pytest.mark.parametrize("entry", ["encoder", "target_encoder", None])
@torch.inference_mode()
def test_model_through_a_folder(parity_dir, expected, same, tmp_path, entry) -> None:
    path = parity_dir / "pt" / "vit_tiny.pt"
    hints = SizeHints(**_hints(expected.config))
    done = convert(path, tmp_path / "out", entry=entry, hints=hints, check=True)
    assert done.entry == (entry or "target_encoder")
    assert done.max_difference is not None
    assert done.max_difference < 3e-5
    model = VJepa2.from_pretrained(tmp_path / "out")
    assert model.fingerprint == done.fingerprint
    tokens = model.encoder(expected.given["x"])
    same(tokens, expected.expected[done.entry])
    if done.entry == "target_encoder":
        found = model.predictor(tokens, expected.given["masks_x"], expected.given["masks_y"])
        same(found, expected.expected["predictor_on_target"])


@torch.inference_mode()
def test_action_probes(parity_dir, expected, same, tmp_path) -> None:
    path = parity_dir / "pt" / "ek100_probe_tiny.pt"
    file = read_upstream(path)
    assert file.kind == "probe"
    heads = expected.config["probe"]["num_heads"]
    for i in range(len(file.entries)):
        out = tmp_path / str(i)
        convert(path, out, classifier=i, hints=SizeHints(heads=heads), check=True)
        logits = load_probe(out)(expected.expected["target_encoder"])
        for part in ("verb", "noun", "action"):
            same(getattr(logits, part), expected.expected[f"ek_probe{i}_{part}"])


@torch.inference_mode()
def test_classification_probe(parity_dir, expected, same) -> None:
    file = read_upstream(parity_dir / "pt" / "ssv2_probe_tiny.pt")
    heads = expected.config["probe"]["num_heads"]
    config = infer_probe_config(probe_state(file), heads=heads)
    assert config.depth == expected.config["probe"]["depth"]
    probe = probe_from_upstream(file, config=config)
    same(probe(expected.expected["target_encoder"]), expected.expected["ssv2_logits"])


def test_action_conditioned_file_is_named_as_such(parity_dir, tmp_path) -> None:
    with pytest.raises(CheckpointError, match="action-conditioned"):
        convert(parity_dir / "pt" / "ac_tiny.pt", tmp_path / "out")
