"""Attentive pooler and the heads on it: clip classification and verb/noun/action anticipation."""

# B batch  N tokens  Q queries  D width  L classes

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from streamer.errors import NumericalError, ShapeMismatch
from streamer.models.attention import CrossAttention
from streamer.models.blocks import Block, CrossBlock, GeluMlp
from streamer.models.probe_config import ProbeConfig

__all__ = ["ActionLogits", "ActionProbe", "AttentiveClassifier", "AttentivePooler", "build_probe"]


class AttentivePooler(nn.Module):
    """Self-attention blocks without positions, then learned queries that look at the result.

    Source: vjepa2 src/models/attentive_pooler.py::AttentivePooler (c2963a4), identical.
    """

    def __init__(self, config: ProbeConfig) -> None:
        super().__init__()
        width, heads, eps = config.hidden_size, config.num_attention_heads, config.layer_norm_eps
        hidden = int(width * config.mlp_ratio)
        self.query_tokens = nn.Parameter(torch.zeros(1, config.num_queries, width))
        self.cross_attention_block: CrossBlock | CrossAttention = (
            CrossBlock(width, heads=heads, hidden=hidden, eps=eps)
            if config.complete_block
            else CrossAttention(width, heads=heads)
        )
        self.blocks = nn.ModuleList(
            Block(width, heads=heads, mlp=GeluMlp(width, hidden=hidden), eps=eps)
            for _ in range(config.depth - 1)
        )

    def forward(self, tokens_BND: Tensor) -> Tensor:
        """`[B, N, D]` -> `[B, Q, D]`.

        Raises:
            ShapeMismatch: tokens of another width.
        """
        queries = self.query_tokens.expand(tokens_BND.shape[0], -1, -1)
        if tokens_BND.ndim != 3 or tokens_BND.shape[2] != queries.shape[2]:
            raise ShapeMismatch(
                f"The probe reads tokens [B, N, {queries.shape[2]}]; "
                f"found {list(tokens_BND.shape)}."
            )
        for block in self.blocks:
            tokens_BND = block(tokens_BND)
        return self.cross_attention_block(queries, tokens_BND)


class AttentiveClassifier(nn.Module):
    """One query, one linear head (SSv2, Diving48, Kinetics).

    Source: vjepa2 src/models/attentive_pooler.py::AttentiveClassifier (c2963a4), identical.
    """

    def __init__(self, config: ProbeConfig) -> None:
        super().__init__()
        self.pooler = AttentivePooler(config)
        self.linear = nn.Linear(config.hidden_size, config.num_labels)

    def forward(self, tokens_BND: Tensor) -> Tensor:
        """`[B, N, D]` -> logits `[B, L]`.

        Raises:
            NumericalError: a logit is not finite.
        """
        logits = self.linear(self.pooler(tokens_BND)[:, 0])
        _check_finite(logits, "class logits")
        return logits


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionLogits:
    """What an action probe says; verb and noun are None for an action-only probe."""

    action: Tensor
    """`[B, L]`."""
    verb: Tensor | None = None
    noun: Tensor | None = None


class ActionProbe(nn.Module):
    """A query and a linear head each for verb, noun and action, or for action alone.

    Source: vjepa2 evals/action_anticipation_frozen/models.py::AttentiveClassifier (c2963a4),
        identical; differs in raising where upstream exits the process.
    """

    def __init__(self, config: ProbeConfig) -> None:
        super().__init__()
        self.pooler = AttentivePooler(config)
        self.has_verbs = config.num_verbs > 0
        if self.has_verbs:
            self.verb_classifier = nn.Linear(config.hidden_size, config.num_verbs)
            self.noun_classifier = nn.Linear(config.hidden_size, config.num_nouns)
        self.action_classifier = nn.Linear(config.hidden_size, config.num_actions)

    def forward(self, tokens_BND: Tensor) -> ActionLogits:
        """`[B, N, D]` -> logits.

        Raises:
            NumericalError: a logit is not finite.
        """
        pooled = self.pooler(tokens_BND)
        action = self.action_classifier(pooled[:, -1])
        _check_finite(action, "action logits")
        if not self.has_verbs:
            return ActionLogits(action=action)
        verb = self.verb_classifier(pooled[:, 0])
        return ActionLogits(action=action, verb=verb, noun=self.noun_classifier(pooled[:, 1]))


def build_probe(config: ProbeConfig) -> AttentiveClassifier | ActionProbe:
    """The module that a probe's config describes, with unset weights."""
    return ActionProbe(config) if config.num_actions else AttentiveClassifier(config)


def _check_finite(logits: Tensor, what: str) -> None:
    if not bool(torch.isfinite(logits).all()):
        raise NumericalError(
            f"The probe's {what} are not finite: its weights or the tokens are damaged."
        )
