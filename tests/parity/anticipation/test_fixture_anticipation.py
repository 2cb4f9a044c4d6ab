"""The anticipation wrapper and the rollout of upstream, with the EK100 probe on top."""

from __future__ import annotations

import pytest
import torch

from streamer.futures.anticipative import anticipative_tokens
from streamer.futures.config import AnticipativeConfig, gap_steps
from streamer.futures.rollout import Rollout
from streamer.futures.window import gap_ids
from streamer.models.pooler import ActionProbe, build_probe
from streamer.models.probe_config import ProbeConfig
from streamer.models.vjepa2 import VJepa2

pytestmark = pytest.mark.parity


@pytest.fixture(scope="module")
def wrapper(published, sizes):
    file = published("anticipation")
    model = VJepa2(sizes(file.config["encoder"], file.config["predictor"]))
    file.load(model.encoder, "encoder")
    file.load(model.predictor, "predictor")
    return file, model


def _probe(file, *, action_only: bool) -> ActionProbe:
    classes = file.config["num_classes"]
    config = ProbeConfig(
        hidden_size=file.config["encoder"]["embed_dim"],
        num_attention_heads=file.config["probe"]["num_heads"],
        depth=file.config["probe"]["depth"],
        num_queries=1 if action_only else 3,
        layer_norm_eps=file.config["probe_norm_eps"],
        num_verbs=0 if action_only else classes["verb"],
        num_nouns=0 if action_only else classes["noun"],
        num_actions=classes["action"],
    )
    probe = build_probe(config)
    file.load(probe, "probe_action_only" if action_only else "probe")
    assert isinstance(probe, ActionProbe)
    return probe


def _tokens(wrapper, **switches):
    file, model = wrapper
    config = AnticipativeConfig(fps=file.config["frames_per_second"], **switches)
    times = file.given["anticipation_times"]
    return anticipative_tokens(model, file.given["x"], times, config=config)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_tokens_and_logits(wrapper, same, steps: int) -> None:
    file, _ = wrapper
    tokens = _tokens(wrapper, num_steps=steps)
    same(tokens, file.expected[f"tokens_steps{steps}"])
    with torch.inference_mode():
        logits = _probe(file, action_only=False)(tokens)
    for head in ("verb", "noun", "action"):
        same(getattr(logits, head), file.expected[f"logits_{head}_steps{steps}"])


def test_action_only_probe(wrapper, same) -> None:
    file, _ = wrapper
    with torch.inference_mode():
        logits = _probe(file, action_only=True)(_tokens(wrapper))
    same(logits.action, file.expected["logits_action_only_steps1"])


def test_switches(wrapper, same) -> None:
    file, _ = wrapper
    without = _tokens(wrapper, num_steps=3, no_encoder=True)
    same(without, file.expected["tokens_steps3_no_encoder"])
    same(_tokens(wrapper, no_predictor=True), file.expected["tokens_no_predictor"])
    more = _tokens(wrapper, num_steps=2, num_output_frames=4)
    same(more, file.expected["tokens_steps2_out4frames"])


def test_gaps_and_target_positions(wrapper) -> None:
    file, model = wrapper
    times = file.given["anticipation_times"].tolist()
    gaps = [gap_steps(t, fps=file.config["frames_per_second"], tubelet=2) for t in times]
    assert gaps == file.expected["anticipation_steps"].tolist()
    places = model.config.grid_size**2
    count = file.expected["tokens_no_predictor"].shape[1]
    ids = gap_ids(count, places, gaps_B=torch.tensor(gaps), places=places)
    assert torch.equal(ids, file.expected["target_positions"])


def test_gap_mode_predicts_what_the_wrapper_does(wrapper, same) -> None:
    file, model = wrapper
    latents = file.expected["tokens_no_predictor"]
    places = model.config.grid_size**2
    grid = (latents.shape[1] // places, model.config.grid_size, model.config.grid_size)
    rollout = Rollout(model)
    for row, gap in enumerate(file.expected["anticipation_steps"].tolist()):
        if gap >= grid[0]:
            continue
        (future,) = rollout.gap(latents[row], grid=grid, fps=8.0, gaps=[gap])
        same(future.tokens, file.expected["tokens_steps1"][row, -places:])
