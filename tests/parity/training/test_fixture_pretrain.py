"""Three optimiser steps of pre-training against upstream's."""

from __future__ import annotations

import pytest
import torch

from streamer.models.encoder import Encoder
from streamer.models.predictor import Predictor
from streamer.training.config import OptimiserConfig
from streamer.training.ema import follow
from streamer.training.learner import Learner, TubeTask
from streamer.training.masks import Masks
from streamer.training.optimiser import make_optimisers
from streamer.training.schedule import EmaMomentum, HalfCosine, WarmupCosine

pytestmark = pytest.mark.parity


def _learner(file, sizes) -> Learner:
    given = file.config
    shape = {k: given[k] for k in ("img_size", "patch_size", "num_frames", "tubelet_size")}
    width = {k: given[k] for k in ("embed_dim", "depth", "num_heads", "mlp_ratio")}
    foresight = {
        "predictor_embed_dim": given["predictor_embed_dim"],
        "depth": given["predictor_depth"],
        "num_heads": given["predictor_num_heads"],
        "num_mask_tokens": given["num_mask_tokens"],
    }
    config = sizes(shape | width, foresight)
    encoder, predictor = Encoder(config), Predictor(config)
    file.load(encoder, "encoder")
    file.load(predictor, "predictor")
    learner = Learner(encoder, predictor)
    learner.train()
    return learner


def _tasks(file, step: int) -> list[TubeTask]:
    return [
        TubeTask(
            masks=Masks(
                context_ids=file.given[f"step{step}.enc_mask{i}"],
                target_ids=file.given[f"step{step}.pred_mask{i}"],
            ),
            mask_index=file.config["mask_index_used"],
        )
        for i in range(2)
    ]


def test_losses_values_and_weights_are_upstreams(published, sizes) -> None:
    file = published("train_pretrain")
    given = file.config
    learner = _learner(file, sizes)
    total = int(given["ipe_scale"] * given["num_epochs"] * given["iterations_per_epoch"])
    rate = WarmupCosine(
        start=given["start_lr"],
        peak=given["ref_lr"],
        final=given["final_lr"],
        warmup=int(given["warmup"] * given["iterations_per_epoch"]),
        total=total,
    )
    decay = HalfCosine(start=given["wd"], final=given["final_wd"], total=total)
    momentum = EmaMomentum(start=given["ema"][0], final=given["ema"][1], total=total)
    optimisers = make_optimisers(
        (learner.encoder, learner.predictor),
        OptimiserConfig(betas=tuple(given["betas"]), eps=given["eps"]),
    )
    for step in range(3):
        i = step + 1
        optimisers.set(lr=rate(i), muon_lr=0.0, weight_decay=decay(i))
        loss = learner(file.given[f"step{step}.clip"], _tasks(file, step))
        loss.backward()
        if step == 0:
            _check_gradients(file, learner)
        optimisers.step()
        follow(learner.target_encoder, learner.encoder, momentum=momentum(i))
        assert loss.item() == pytest.approx(file.expected["loss"][step].item(), abs=2e-5)
        assert rate(i) == pytest.approx(file.expected["lr"][step].item(), rel=1e-9)
        assert decay(i) == pytest.approx(file.expected["wd"][step].item(), rel=1e-9)
        assert momentum(i) == pytest.approx(file.expected["momentum"][step].item(), rel=1e-9)
    _check_weights(file, learner)


def _check_gradients(file, learner: Learner) -> None:
    found = 0
    for part, module in (("encoder", learner.encoder), ("predictor", learner.predictor)):
        expected = file.expected[f"grad_norm.{part}"]
        names = file.config[f"parameter_names_{part}"]
        parameters = dict(module.named_parameters())
        assert names == list(parameters)
        for name, norm in zip(names, expected.tolist(), strict=True):
            gradient = parameters[name].grad
            ours = 0.0 if gradient is None else gradient.norm().item()
            assert ours == pytest.approx(norm, rel=2e-4, abs=2e-6), name
            found += 1
    assert found > 50


def _check_weights(file, learner: Learner) -> None:
    found = 0
    for name, expected in file.expected.items():
        if not name.startswith("final."):
            continue
        part, _, key = name.removeprefix("final.").partition(".")
        module = learner.target_encoder if part == "target" else getattr(learner, part)
        torch.testing.assert_close(
            dict(module.named_parameters())[key].detach(), expected, atol=3e-5, rtol=1e-4
        )
        found += 1
    assert found == 11
