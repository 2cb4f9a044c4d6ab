"""`streamer models`: what it prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streamer.cli.models import app
from streamer.models.vjepa2 import VJepa2

pytestmark = pytest.mark.unit


def _run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_ls_knows_the_released_sizes() -> None:
    rows = {row["name"]: row for row in json.loads(_run("ls"))}
    assert rows["tiny"]["weights"] is None
    assert rows["vitl"]["weights"] == "facebook/vjepa2-vitl-fpc64-256"
    assert round(rows["vitg"]["parameters"] / 1e6) == 1035
    assert "vith" in _run("ls", "--output", "table")


def test_inspect_a_folder(folder: Path, model: VJepa2) -> None:
    found = json.loads(_run("inspect", str(folder), "--output", "json"))
    (entry,) = found["entries"]
    assert (found["kind"], found["trained"]) == ("model", True)
    assert entry["fingerprint"] == model.fingerprint
    assert entry["parameters"] == sum(p.numel() for p in model.parameters())
    assert entry["mask_token_norms"][0] == 0.0
    assert entry["mask_token_norms"][1] > 0.0
    keys = {tensor["key"]: tensor["shape"] for tensor in entry["tensors"]}
    assert keys["encoder.layer.0.attention.query.weight"] == [48, 48]
    assert found["bf16_error"] is None
    table = _run("inspect", str(folder), "--output", "table", "--bf16")
    assert "bf16 error" in table
    assert model.fingerprint in table
    assert "encoder.layernorm.bias" in table


def test_inspect_a_file_and_a_preset(upstream_pt: Path) -> None:
    found = json.loads(_run("inspect", str(upstream_pt), "--crop", "16"))
    entries = {entry["name"]: entry for entry in found["entries"]}
    assert list(entries) == ["target_encoder", "encoder", "predictor"]
    assert entries["encoder"]["fingerprint"] != entries["target_encoder"]["fingerprint"]
    assert len(entries["predictor"]["mask_token_norms"]) == 3
    preset = json.loads(_run("inspect", "vitg-384"))
    assert (preset["kind"], preset["trained"]) == ("preset", False)


def test_bf16_error_is_small_but_there(folder: Path) -> None:
    error = json.loads(_run("inspect", str(folder), "--bf16"))["bf16_error"]
    assert 0.0 < error["mean"] < error["largest"] < 0.5


def test_convert_and_inspect_agree(upstream_pt: Path, tmp_path: Path) -> None:
    sizes = ["--heads", "2", "--pred-heads", "1", "--crop", "16", "--frames", "4"]
    out = str(tmp_path / "out")
    done = json.loads(
        _run("convert", str(upstream_pt), out, "--encoder", "encoder", *sizes, "--check")
    )
    found = json.loads(_run("inspect", str(upstream_pt), "--crop", "16"))
    entry = next(entry for entry in found["entries"] if entry["name"] == "encoder")
    assert done["sha256"] == entry["sha256"]
    assert done["entry"] == "encoder"


def test_help_names_an_example() -> None:
    for command in ("ls", "inspect", "convert"):
        assert f"streamer models {command}" in _run(command, "-h").replace("\n", " ")
