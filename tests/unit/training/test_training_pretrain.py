"""The loop: it learns, and a training that was stopped goes on as if it had not been."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from streamer.errors import CheckpointError, ConfigError, NumericalError
from streamer.models.config import VJepa2Config
from streamer.models.vjepa2 import VJepa2
from streamer.training.config import (
    LONG_RANGE,
    OptimiserConfig,
    PretrainConfig,
    TaskConfig,
    YardClipsConfig,
)
from streamer.training.pretrain import Pretraining, Progress
from streamer.training.yard_clips import YardClips

pytestmark = pytest.mark.unit

_SIZES = VJepa2Config(
    model_type="streamer_vjepa2",
    crop_size=32,
    frames_per_clip=8,
    hidden_size=24,
    num_hidden_layers=1,
    num_attention_heads=2,
    pred_hidden_size=24,
    pred_num_hidden_layers=1,
    pred_num_attention_heads=2,
    pred_num_mask_tokens=2,
    mask_index=0,
    rope="interleaved",
    feeds_back_normed=True,
)
_CONFIG = PretrainConfig(
    steps=12,
    batch=2,
    warmup=2,
    loss="l1+l2",
    weighs_motion=True,
    consistency=1.0,
    fan_in_init=True,
    optimiser=OptimiserConfig(lr=1e-3, muon=True),
    tasks=TaskConfig(
        contexts=(2, 3),
        ahead=(1, 2),
        rollout_steps=(2,),
        rollout=0.5,
        rollout_after=0.3,
        future=0.7,
        tubes=(LONG_RANGE,),
        tubelets=4,
    ),
    data=YardClipsConfig(side=32),
    save_every=5,
)


def _train(folder: Path, config: PretrainConfig = _CONFIG, until: int | None = None) -> list:
    training = Pretraining(_SIZES, config, folder=folder)
    told: list[Progress] = []

    def tell(progress: Progress) -> None:
        told.append(progress)
        if progress.step == until:
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        training.run(told=tell)
    return told


def test_a_killed_training_goes_on_exactly(tmp_path: Path) -> None:
    whole = _train(tmp_path / "whole")
    _train(tmp_path / "cut", until=8)  # saved after 5
    rest = _train(tmp_path / "cut")
    assert [each.step for each in rest] == list(range(6, 13))
    assert [each.loss for each in rest] == [each.loss for each in whole[5:]]
    states = [
        torch.load(tmp_path / name / "last.pt", weights_only=True) for name in ("whole", "cut")
    ]
    for name, value in states[0]["learner"].items():
        assert torch.equal(value, states[1]["learner"][name]), name


def test_another_configuration_is_not_gone_on_with(tmp_path: Path) -> None:
    _train(tmp_path, until=6)
    with pytest.raises(ConfigError, match=r"consistency was 1\.0, is 0\.5"):
        _train(tmp_path, replace(_CONFIG, consistency=0.5))


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    (tmp_path / "last.pt").write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(CheckpointError, match=r"last\.pt cannot be read"):
        _train(tmp_path)


def test_a_loss_that_is_not_finite_ends_it_and_keeps_the_last_good_state(tmp_path: Path) -> None:
    training = Pretraining(_SIZES, _CONFIG, folder=tmp_path)

    def spoil(progress: Progress) -> None:
        if progress.step == 7:
            with torch.no_grad():
                training._learner.encoder.norm.bias[0] = float("nan")

    with pytest.raises(NumericalError, match=r"step 8 is nan.*last\.pt"):
        training.run(told=spoil)
    assert torch.load(tmp_path / "last.pt", weights_only=True)["step"] == 5


def test_the_data_of_a_step_never_changes() -> None:
    def clips(seed: int) -> YardClips:
        return YardClips(YardClipsConfig(side=32), batch=2, frames=3, total=10, seed=seed)

    assert torch.equal(clips(1)[3], clips(1)[3])
    assert not torch.equal(clips(1)[3], clips(1)[4])
    assert not torch.equal(clips(1)[3], clips(2)[3])


def test_trained_weights_are_the_targets_and_load_again(tmp_path: Path) -> None:
    model = Pretraining(_SIZES, _CONFIG, folder=tmp_path).run(told=lambda _: None)
    model.save_pretrained(tmp_path / "model")
    again = VJepa2.from_pretrained(tmp_path / "model")
    assert again.trained
    assert (again.config.rope, again.config.mask_index) == ("interleaved", 0)
    assert again.config.feeds_back_normed
    assert again.fingerprint == model.fingerprint
