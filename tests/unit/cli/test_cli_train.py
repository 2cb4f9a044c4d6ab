"""`streamer train pretrain --dry-run` says what a training will take."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from streamer.cli.main import app
from streamer.errors import ConfigError

pytestmark = pytest.mark.unit

RECIPE = """
model:
  model_type: streamer_vjepa2
  crop_size: 32
  frames_per_clip: 8
  hidden_size: 24
  num_hidden_layers: 1
  num_attention_heads: 2
  pred_hidden_size: 24
  pred_num_hidden_layers: 1
  pred_num_attention_heads: 2
  pred_num_mask_tokens: 3
  mask_index: 0
  rope: interleaved
  feeds_back_normed: true
training: {steps: 600, batch: 1, whitened_patches: false}
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    file = tmp_path / "recipe.yaml"
    file.write_text(RECIPE)
    return file


def test_shapes_times_and_nothing_left(recipe: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["train", "pretrain", "--config", str(recipe), "--dry-run"])
    assert done.exit_code == 0, done.exception
    facts = dict(line.split(": ") for line in done.stdout.splitlines())
    assert facts["token grid of a served clip"] == "[4, 2, 2]"
    assert facts["batch, uint8 [B, T, H, W, C]"].startswith("[1, ")
    assert float(facts["seconds per step"]) > 0
    assert "minutes for 600 steps" in facts
    assert "nothing was kept" in done.stderr
    assert list(tmp_path.iterdir()) == [recipe]


def test_a_training_needs_a_folder(recipe: Path) -> None:
    done = CliRunner().invoke(app, ["train", "pretrain", "--config", str(recipe)])
    assert isinstance(done.exception, ConfigError) and "--out" in str(done.exception)
