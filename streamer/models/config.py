"""What a checkpoint is: sizes and switches under the names that Hugging Face uses.

A `config.json` becomes a `VJepa2Config` and back without loss. Unknown keys are an error, since a
key we do not know may change the numbers; keys that cannot are listed in `IGNORED_KEYS`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Final, Literal

from streamer.errors import ConfigError

__all__ = ["IGNORED_KEYS", "PRESETS", "RopeForm", "VJepa2Config", "check_keys"]

RopeForm = Literal["tiled", "interleaved"]

CLASSIFICATION: Final = "VJEPA2ForVideoClassification"
MIN_HEAD_DIM: Final = 12
"""Below it an axis of the rotary embedding has fewer than two pairs of channels."""

IGNORED_KEYS: Final = frozenset(
    {
        "_attn_implementation",
        "_name_or_path",
        "chunk_size_feed_forward",
        "dtype",
        "image_size",
        "is_encoder_decoder",
        "label2id",
        "output_attentions",
        "output_hidden_states",
        "problem_type",
        "return_dict",
        "torch_dtype",
        "transformers_version",
    }
)
"""Keys that never change the numbers: bookkeeping of transformers, or derived from other keys."""

_ALIASES: Final = {"use_SiLU": "use_silu", "wide_SiLU": "wide_silu"}
"""Spellings in the config files of the first release on the hub."""

_DERIVED: Final = ("id2label", "architectures")
_OURS: Final = (
    "mask_index",
    "rope",
    "feeds_back_normed",
    "use_silu",
    "wide_silu",
    "pred_use_silu",
    "trained",
)
"""Keys that transformers does not know; written only where they differ from the default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VJepa2Config:
    """Sizes of encoder, masked predictor and (optionally) attentive classifier."""

    model_type: str = "vjepa2"
    """`vjepa2`, or `streamer_vjepa2` for what transformers would misread."""
    architectures: tuple[str, ...] = ("VJEPA2Model",)
    """`VJEPA2ForVideoClassification` adds the attentive classifier."""
    patch_size: int = 16
    """Pixels per side of a token."""
    crop_size: int = 256
    """Pixels per side of the (square) pictures it was trained on."""
    frames_per_clip: int = 64
    """Frames per clip it was trained on; positions beyond are extrapolated."""
    tubelet_size: int = 2
    """Frames per token."""
    hidden_size: int = 1024
    in_chans: int = 3
    num_attention_heads: int = 16
    num_hidden_layers: int = 24
    drop_path_rate: float = 0.0
    """Training only."""
    mlp_ratio: float = 4.0
    layer_norm_eps: float = 1e-6
    qkv_bias: bool = True
    attention_probs_dropout_prob: float = 0.0
    """Training only."""
    hidden_act: str = "gelu"
    """Exact (erf) GELU; nothing else was ever released."""
    initializer_range: float = 0.02
    """Standard deviation of fresh weights."""
    attention_dropout: float = 0.0
    """Training only."""
    num_pooler_layers: int = 3
    """Self-attention blocks in front of the pooler's cross-attention."""
    pred_hidden_size: int = 384
    pred_num_attention_heads: int = 12
    pred_num_hidden_layers: int = 12
    pred_num_mask_tokens: int = 10
    pred_zero_init_mask_tokens: bool = True
    pred_mlp_ratio: float = 4.0
    id2label: dict[int, str] = field(default_factory=dict, hash=False)
    """Class names of the classifier; empty means two unnamed classes, as in transformers."""
    mask_index: int = 1
    """Which mask token the predictor uses unless told otherwise; released callers use 1."""
    rope: RopeForm = "tiled"
    """`tiled`: the quirk that every 2.0 weight was trained with; `interleaved`: corrected."""
    feeds_back_normed: bool = False
    """Whether a rollout layer-norms predictions before they join the context. Released models are
    rolled out without; ours are trained with it."""
    use_silu: bool = False
    """SwiGLU instead of GELU in the encoder."""
    wide_silu: bool = True
    """With SwiGLU: two thirds of the width, rounded up to a multiple of 8."""
    pred_use_silu: bool = False
    """SwiGLU instead of GELU in the predictor."""
    trained: bool = True
    """False for random weights. Stored in `config.json` only when false."""

    def __post_init__(self) -> None:
        _check_choices(self)
        _check_positive(self)
        _check_heads(self.hidden_size, self.num_attention_heads, what="")
        _check_heads(self.pred_hidden_size, self.pred_num_attention_heads, what="pred_")
        if self.crop_size % self.patch_size:
            raise ConfigError(
                f"crop_size {self.crop_size} is not a multiple of patch_size {self.patch_size}."
            )

    @property
    def grid_size(self) -> int:
        """Tokens per side of a trained picture."""
        return self.crop_size // self.patch_size

    @property
    def trained_tubelets(self) -> int:
        """Tokens along time of a trained clip."""
        return self.frames_per_clip // self.tubelet_size

    @property
    def has_classifier(self) -> bool:
        return CLASSIFICATION in self.architectures

    @property
    def num_labels(self) -> int:
        return len(self.id2label) or 2

    @property
    def is_hf_expressible(self) -> bool:
        """Whether transformers computes the same numbers from this config."""
        plain = (self.rope, self.mask_index, self.feeds_back_normed) == ("tiled", 1, False)
        return plain and not self.use_silu and not self.pred_use_silu

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> VJepa2Config:
        """The content of a `config.json`.

        Raises:
            ConfigError: an unknown key (with the nearest known name) or a value that cannot work.
        """
        known = {f.name for f in fields(cls)}
        given = {_ALIASES.get(key, key): value for key, value in values.items()}
        check_keys(given, known=known, ignored=IGNORED_KEYS)
        return cls(**{key: _read(key, given[key]) for key in given if key in known})

    def to_dict(self) -> dict[str, Any]:
        """What `config.json` holds; our own additions only where they differ from the default."""
        names = [f.name for f in fields(self) if f.name not in (*_OURS, *_DERIVED)]
        out: dict[str, Any] = {"architectures": list(self.architectures)}
        out |= {name: getattr(self, name) for name in names}
        out |= {n: getattr(self, n) for n in _OURS if getattr(self, n) != _default(n)}
        if self.id2label:
            out["id2label"] = {str(i): label for i, label in self.id2label.items()}
            out["label2id"] = {label: i for i, label in self.id2label.items()}
        return out


def check_keys(given: Mapping[str, Any], *, known: set[str], ignored: frozenset[str]) -> None:
    """Raise `ConfigError` for keys outside `known` and `ignored`, with the nearest known name."""
    unknown = sorted(set(given) - known - ignored)
    if unknown:
        near = [_nearest(key, known) for key in unknown]
        raise ConfigError(f"Unknown keys in the model config: {', '.join(near)}.")


def _nearest(key: str, known: set[str]) -> str:
    match = difflib.get_close_matches(key, sorted(known), n=1)
    return f"{key!r} (did you mean {match[0]!r}?)" if match else repr(key)


def _default(name: str) -> Any:
    return next(f.default for f in fields(VJepa2Config) if f.name == name)


def _read(key: str, value: Any) -> Any:
    if key == "id2label":
        return _read_labels(value)
    if key == "architectures":
        return _read_architectures(value)
    if key == "patch_size" and isinstance(value, list) and len(set(map(repr, value))) == 1:
        value = value[0]
    default = _default(key)
    kinds = (int, float) if isinstance(default, float) else (type(default),)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise ConfigError(f"{key} must be of type {kinds[-1].__name__}, found {value!r}.")
    return value


def _read_labels(value: Any) -> dict[int, str]:
    try:
        labels = {int(i): str(label) for i, label in (value or {}).items()}
    except (AttributeError, ValueError) as error:
        raise ConfigError("id2label must map numbers to names.") from error
    if sorted(labels) != list(range(len(labels))):
        raise ConfigError("id2label must number its labels 0, 1, 2, ... without holes.")
    return labels


def _read_architectures(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ConfigError(f"architectures must be a list of names, found {value!r}.")
    return tuple(value)


def _check_choices(config: VJepa2Config) -> None:
    choices = {
        "model_type": ("vjepa2", "streamer_vjepa2"),
        "rope": ("tiled", "interleaved"),
        "hidden_act": ("gelu",),
    }
    for name, allowed in choices.items():
        if getattr(config, name) not in allowed:
            raise ConfigError(
                f"{name} is {getattr(config, name)!r}; we know {' and '.join(allowed)}."
            )


_NON_NEGATIVE: Final = ("mask_index", "num_pooler_layers")
# Several times the largest released model: a config is a file of strangers, and one wrong digit
# would fill the memory before any tensor could be compared with it.
_MOST: Final = MappingProxyType(
    {
        "crop_size": 2048,
        "patch_size": 256,
        "tubelet_size": 64,
        "frames_per_clip": 1024,
        "in_chans": 64,
        "hidden_size": 16_384,
        "num_hidden_layers": 512,
        "num_attention_heads": 1024,
        "mlp_ratio": 32,
        "pred_hidden_size": 16_384,
        "pred_num_hidden_layers": 512,
        "pred_num_attention_heads": 1024,
        "pred_num_mask_tokens": 4096,
        "pred_mlp_ratio": 32,
        "num_pooler_layers": 512,
    }
)


def _check_positive(config: VJepa2Config) -> None:
    for f in fields(config):
        value = getattr(config, f.name)
        if type(f.default) is int and value < (0 if f.name in _NON_NEGATIVE else 1):
            raise ConfigError(f"{f.name} is {value}, which is too small.")
    for name, most in _MOST.items():
        if getattr(config, name) > most:
            raise ConfigError(f"{name} is {getattr(config, name)}; at most {most} is taken.")
    for name in ("mlp_ratio", "pred_mlp_ratio", "layer_norm_eps"):
        if not getattr(config, name) > 0:
            raise ConfigError(f"{name} is {getattr(config, name)}; it must be above 0.")
    if config.frames_per_clip < config.tubelet_size:
        raise ConfigError(
            f"frames_per_clip {config.frames_per_clip} is shorter than one tubelet of "
            f"{config.tubelet_size} frames."
        )


def _check_heads(width: int, heads: int, *, what: str) -> None:
    if width % heads:
        raise ConfigError(
            f"{what}hidden_size {width} does not divide by {what}num_attention_heads {heads}."
        )
    if width // heads < MIN_HEAD_DIM:
        raise ConfigError(
            f"{what}hidden_size {width} over {heads} heads gives {width // heads} channels per "
            f"head; the rotary embedding needs at least {MIN_HEAD_DIM}."
        )


_VITL = VJepa2Config()
_VITG = replace(
    _VITL,
    hidden_size=1408,
    num_hidden_layers=40,
    num_attention_heads=22,
    mlp_ratio=48 / 11,
)

PRESETS: Final[Mapping[str, VJepa2Config]] = MappingProxyType(
    {
        "tiny": VJepa2Config(
            crop_size=64,
            hidden_size=192,
            num_hidden_layers=6,
            num_attention_heads=3,
            pred_hidden_size=96,
            pred_num_hidden_layers=4,
            pred_num_attention_heads=3,
        ),
        "vitl": _VITL,
        "vith": replace(_VITL, hidden_size=1280, num_hidden_layers=32),
        "vitg": _VITG,
        "vitg-384": replace(_VITG, crop_size=384),
    }
)
"""Sizes by name: `tiny` is ours, for tests and demonstrations; the others are the released ones."""
