"""Upstream `.pt` files: choice of encoder, inferred sizes, conversion, refusals."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from streamer.errors import CheckpointError, ConfigError, NotFound
from streamer.models.conversion import SizeHints, convert
from streamer.models.inference import infer_config, infer_probe_config
from streamer.models.inspection import inspect_model
from streamer.models.pooler import build_probe
from streamer.models.probe import load_probe
from streamer.models.upstream import choose_encoder, read_upstream
from streamer.models.vjepa2 import VJepa2

pytestmark = pytest.mark.unit

HINTS = SizeHints(crop=16, frames=4, heads=2, pred_heads=1)


class _Code:
    def __reduce__(self):
        return os.system, ("echo this must never run",)


def _save(path: Path, **changes: object) -> Path:
    content = torch.load(path, weights_only=True)
    for name, value in changes.items():
        if value is None:
            content.pop(name)
        else:
            content[name] = value
    fresh = path.with_suffix(".new")
    torch.save(content, fresh)
    fresh.replace(path)  # tensors read before are mapped from the old file
    return path


def test_order_of_preference_is_logged_with_a_hash(upstream_pt: Path, caplog) -> None:
    file = read_upstream(upstream_pt)
    with caplog.at_level(logging.INFO, logger="streamer.models.upstream"):
        name, target = choose_encoder(file)
    assert name == "target_encoder"
    assert "pos_embed" not in file.entries["encoder"]
    record = caplog.records[0]
    assert (record.entry, len(record.sha256)) == ("target_encoder", 64)
    assert choose_encoder(file, "encoder")[1] is not target
    _save(upstream_pt, ema_encoder=_wrap(target), target_encoder=None)
    assert choose_encoder(read_upstream(upstream_pt))[0] == "ema_encoder"


def _wrap(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {f"module.{key}": tensor for key, tensor in state.items()}


def test_entry_that_is_not_there(upstream_pt: Path) -> None:
    file = read_upstream(upstream_pt)
    with pytest.raises(CheckpointError, match="it has target_encoder, encoder"):
        choose_encoder(file, "ema_encoder")
    with pytest.raises(ConfigError, match="not one of"):
        choose_encoder(file, "opt")


def test_sizes_from_shapes(upstream_pt: Path, make_model) -> None:
    file = read_upstream(upstream_pt)
    encoder, predictor = choose_encoder(file)[1], file.entries["predictor"]
    found = infer_config(encoder, predictor, crop=16, frames=4, heads=2, pred_heads=1)
    assert found == replace(make_model().config, num_pooler_layers=3)
    with pytest.raises(ConfigError, match="--heads"):
        infer_config(encoder, predictor)
    for changes in ({"use_silu": True}, {"use_silu": True, "wide_silu": False, "mlp_ratio": 3.0}):
        model = make_model(**changes)
        states = model.encoder.state_dict(), model.predictor.state_dict()
        found = infer_config(*states, crop=16, frames=4, heads=2)
        assert found == replace(model.config, num_pooler_layers=3)


def test_odd_ratios_give_back_their_width(make_model) -> None:
    for hidden in range(48, 300, 7):
        model = make_model(mlp_ratio=(hidden + 0.5) / 48)
        states = model.encoder.state_dict(), model.predictor.state_dict()
        found = infer_config(*states, crop=16, frames=4, heads=2)
        assert int(48 * found.mlp_ratio) == hidden


@pytest.mark.parametrize("entry", [None, "encoder"])
def test_convert_a_model(upstream_pt: Path, tmp_path: Path, entry: str | None) -> None:
    done = convert(upstream_pt, tmp_path / "out", entry=entry, hints=HINTS, check=True)
    assert done.max_difference is not None
    model = VJepa2.from_pretrained(tmp_path / "out")
    assert model.trained
    state = read_upstream(upstream_pt).entries[done.entry]
    found = model.encoder.state_dict()
    assert found.keys() == state.keys()
    assert all(torch.equal(found[key], state[key]) for key in state)


def test_convert_with_a_config_file(upstream_pt: Path, folder: Path, tmp_path: Path) -> None:
    hints = SizeHints(config=folder / "config.json", frames=8)
    convert(upstream_pt, tmp_path / "out", hints=hints)
    assert VJepa2.from_pretrained(tmp_path / "out").config.frames_per_clip == 8


def test_wrong_preset_names_the_shapes(upstream_pt: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"is \[48\], should be \[192\]") as caught:
        convert(upstream_pt, tmp_path / "out", hints=SizeHints(preset="tiny"))
    assert "missing" in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_convert_an_action_probe(probe_pt: Path, tmp_path: Path) -> None:
    done = convert(probe_pt, tmp_path / "out", hints=SizeHints(heads=4), check=True)
    assert (done.kind, done.entry, done.fingerprint) == ("probe", "classifiers.0", None)
    logits = load_probe(tmp_path / "out")(torch.zeros(1, 3, 48))
    assert logits.verb is not None
    assert (logits.verb.shape, logits.action.shape) == ((1, 3), (1, 5))
    assert inspect_model(str(tmp_path / "out")).kind == "probe"


def test_probe_forms_are_recognised(tmp_path: Path, probe_pt: Path) -> None:
    state = read_upstream(probe_pt).entries["classifiers.0"]
    config = infer_probe_config(state, heads=4)
    for changes in ({"depth": 1}, {"complete_block": False}):
        wanted = replace(config, **changes)
        assert infer_probe_config(build_probe(wanted).state_dict(), heads=4) == wanted


def test_probe_that_the_file_has_not(probe_pt: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no classifier 1"):
        convert(probe_pt, tmp_path / "out", classifier=1, hints=SizeHints(heads=4))
    with pytest.raises(CheckpointError, match="is a probe file, not a model file"):
        convert(probe_pt, tmp_path / "out", kind="model")


def test_full_folder_is_not_written_over(upstream_pt: Path, folder: Path) -> None:
    with pytest.raises(ConfigError, match="not empty"):
        convert(upstream_pt, folder, hints=HINTS)
    convert(upstream_pt, folder, hints=HINTS, overwrite=True)


def test_file_with_code_is_refused(tmp_path: Path, capfd) -> None:
    torch.save({"encoder": _Code()}, tmp_path / "evil.pt")
    with pytest.raises(CheckpointError, match="refuse"):
        read_upstream(tmp_path / "evil.pt")
    assert "never run" not in capfd.readouterr().out


@pytest.mark.parametrize("keep", [0, 10, 500, -200])
def test_truncated_file(upstream_pt: Path, keep: int) -> None:
    upstream_pt.write_bytes(upstream_pt.read_bytes()[:keep])
    with pytest.raises(CheckpointError):
        read_upstream(upstream_pt)


def test_text_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "x.pt").write_text("not found\n" * 100)
    with pytest.raises(CheckpointError):
        read_upstream(tmp_path / "x.pt")
    with pytest.raises(NotFound):
        read_upstream(tmp_path / "y.pt")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1], "holds a list"),
        ({"opt": None}, "holds none of"),
        ({"encoder": {"a": 1}}, "not a dictionary of tensors"),
        ({"encoder": {"a": torch.ones(1), "module.a": torch.ones(1)}}, "twice"),
    ],
)
def test_other_content(tmp_path: Path, content: object, message: str) -> None:
    torch.save(content, tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match=message):
        read_upstream(tmp_path / "x.pt")


def test_missing_and_extra_tensors_are_named(upstream_pt: Path, tmp_path: Path) -> None:
    predictor = dict(read_upstream(upstream_pt).entries["predictor"])
    predictor["extra"] = predictor.pop("predictor_norm.bias")
    _save(upstream_pt, predictor=predictor)
    with pytest.raises(CheckpointError) as caught:
        convert(upstream_pt, tmp_path / "out", hints=HINTS)
    assert "1 missing: predictor.predictor_norm.bias" in str(caught.value)
    assert "1 unexpected: predictor.extra" in str(caught.value)


def test_file_without_predictor_or_sizes(upstream_pt: Path, tmp_path: Path) -> None:
    _save(upstream_pt, predictor=None)
    with pytest.raises(CheckpointError, match="predictor"):
        convert(upstream_pt, tmp_path / "out", hints=HINTS)


def test_hints_that_cannot_be() -> None:
    for bad in ({"preset": "vitx"}, {"preset": "vitl", "config": Path("c")}, {"crop": 0}):
        with pytest.raises(ConfigError):
            SizeHints(**bad)
