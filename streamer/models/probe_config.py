"""What a probe file is: sizes of an attentive pooler and of the heads on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from streamer.errors import ConfigError
from streamer.models.config import VJepa2Config, check_keys

__all__ = ["ProbeConfig"]

PROBE_EPS: Final = 1e-5
"""Layer norm epsilon of upstream's probes; transformers runs the same weights with 1e-6."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeConfig:
    """Either a classifier (`num_labels`) or an action probe (`num_actions`, verbs and nouns)."""

    model_type: str = "streamer_probe"
    hidden_size: int
    num_attention_heads: int = 16
    depth: int = 4
    """Blocks in all: depth - 1 of self-attention and the cross-attention."""
    num_queries: int = 1
    complete_block: bool = True
    """False: bare cross-attention, without norm, residual and MLP."""
    mlp_ratio: float = 4.0
    layer_norm_eps: float = PROBE_EPS
    num_labels: int = 0
    num_verbs: int = 0
    """0 with `num_actions`: a probe that knows actions only."""
    num_nouns: int = 0
    num_actions: int = 0

    def __post_init__(self) -> None:
        if self.model_type != "streamer_probe":
            raise ConfigError(f"A probe's model_type is streamer_probe, not {self.model_type!r}.")
        sizes = (self.hidden_size, self.num_attention_heads, self.depth, self.num_queries)
        if min(sizes) < 1 or min(self.num_labels, self.num_verbs, self.num_nouns) < 0:
            raise ConfigError("A probe's sizes must be at least 1 and its class counts at least 0.")
        if self.hidden_size % self.num_attention_heads:
            raise ConfigError(
                f"hidden_size {self.hidden_size} does not divide by "
                f"num_attention_heads {self.num_attention_heads}."
            )
        if (self.num_labels > 0) == (self.num_actions > 0):
            raise ConfigError("A probe has either num_labels or num_actions, exactly one of them.")
        if (self.num_verbs > 0) != (self.num_nouns > 0):
            raise ConfigError("A probe has both verbs and nouns, or neither.")
        if self.num_actions and self.num_queries != (3 if self.num_verbs else 1):
            raise ConfigError("An action probe has 3 queries with verbs and nouns, else 1.")

    @classmethod
    def of_model(cls, config: VJepa2Config) -> ProbeConfig:
        """The classifier inside a Hugging Face video classification checkpoint.

        Source: transformers 5.24.0 VJEPA2AttentivePooler: heads and epsilon of the encoder, MLP
            ratio 4 whatever the encoder's is.
        """
        return cls(
            hidden_size=config.hidden_size,
            num_attention_heads=config.num_attention_heads,
            depth=config.num_pooler_layers + 1,
            layer_norm_eps=config.layer_norm_eps,
            num_labels=config.num_labels,
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ProbeConfig:
        """The content of a probe's `config.json`.

        Raises:
            ConfigError: an unknown or missing key, or a value that cannot work.
        """
        check_keys(values, known={f.name for f in fields(cls)}, ignored=frozenset())
        kinds = {f.name: type(f.default) for f in fields(cls)} | {"hidden_size": int}
        for key, value in values.items():
            if type(value) is not kinds[key]:
                raise ConfigError(f"{key} must be of type {kinds[key].__name__}, found {value!r}.")
        if "hidden_size" not in values:
            raise ConfigError("A probe's config needs hidden_size.")
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
