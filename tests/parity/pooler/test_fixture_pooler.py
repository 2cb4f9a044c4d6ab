"""Attentive pooler and heads of upstream."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from streamer.models.pooler import AttentiveClassifier, AttentivePooler, build_probe
from streamer.models.probe_config import ProbeConfig

pytestmark = pytest.mark.parity


@pytest.fixture(scope="module")
def attentive(published):
    file = published("attentive_classifier")
    config = ProbeConfig(
        hidden_size=file.config["embed_dim"],
        num_attention_heads=file.config["num_heads"],
        depth=file.config["depth"],
        layer_norm_eps=file.config["norm_eps"],
        num_labels=file.config["num_classes"],
    )
    return file, config


@torch.inference_mode()
def test_classifier(attentive, same) -> None:
    file, config = attentive
    probe = AttentiveClassifier(config)
    file.load(probe, "probe")
    same(probe(file.given["tokens"]), file.expected["logits"])
    same(probe.pooler(file.given["tokens"]), file.expected["pooled"])
    same(probe(file.given["tokens_small"]), file.expected["logits_small"])


@torch.inference_mode()
def test_small_tokens_expose_the_epsilon(attentive) -> None:
    file, config = attentive
    probe = AttentiveClassifier(replace(config, layer_norm_eps=1e-6))
    file.load(probe, "probe")
    found = probe(file.given["tokens_small"])
    assert (found - file.expected["logits_small"]).abs().max() > 0.1


@pytest.mark.parametrize("variant", ["depth1", "incomplete"])
@torch.inference_mode()
def test_other_forms(attentive, same, variant: str) -> None:
    file, config = attentive
    probe = AttentiveClassifier(replace(config, **file.config[f"probe_{variant}"]))
    file.load(probe, f"probe_{variant}")
    same(probe(file.given["tokens"]), file.expected[f"logits_{variant}"])


@torch.inference_mode()
def test_several_queries(attentive, same) -> None:
    file, config = attentive
    pooler = AttentivePooler(replace(config, **file.config["pooler3"]))
    file.load(pooler, "pooler3")
    same(pooler(file.given["tokens"]), file.expected["pooled3"])


@torch.inference_mode()
def test_action_probe_on_small_tokens(published, same) -> None:
    file = published("anticipation")
    classes = file.config["num_classes"]
    config = ProbeConfig(
        hidden_size=file.config["encoder"]["embed_dim"],
        num_attention_heads=file.config["probe"]["num_heads"],
        depth=file.config["probe"]["depth"],
        num_queries=3,
        layer_norm_eps=file.config["probe_norm_eps"],
        num_verbs=classes["verb"],
        num_nouns=classes["noun"],
        num_actions=classes["action"],
    )
    probe = build_probe(config)
    file.load(probe, "probe")
    for tokens, suffix in (
        (file.given["small_tokens"], "small"),
        (file.expected["tokens_steps1"], "steps1"),
    ):
        logits = probe(tokens)
        for part in ("verb", "noun", "action"):
            same(getattr(logits, part), file.expected[f"logits_{part}_{suffix}"])


@torch.inference_mode()
def test_action_only_probe(published, same) -> None:
    file = published("anticipation")
    config = ProbeConfig(
        hidden_size=file.config["encoder"]["embed_dim"],
        num_attention_heads=file.config["probe"]["num_heads"],
        depth=file.config["probe"]["depth"],
        num_actions=file.config["num_classes"]["action"],
    )
    probe = build_probe(config)
    file.load(probe, "probe_action_only")
    logits = probe(file.expected["tokens_steps1"])
    assert logits.verb is None
    assert logits.noun is None
    same(logits.action, file.expected["logits_action_only_steps1"])
