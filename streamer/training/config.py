"""Settings of the training loops. Imports no library, so that `--help` and checks stay light."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from streamer.errors import ConfigError

__all__ = [
    "LONG_RANGE",
    "SHORT_RANGE",
    "BlockMaskConfig",
    "OptimiserConfig",
    "PretrainConfig",
    "TaskConfig",
    "YardClipsConfig",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockMaskConfig:
    """One kind of multi-block mask."""

    num_blocks: int = 8
    """Blocks per sample; their union is predicted."""
    spatial_scale: tuple[float, float] = (0.15, 0.15)
    """Share of a picture that one block covers, from and to."""
    temporal_scale: tuple[float, float] = (1.0, 1.0)
    """Share of the clip's tubelets that one block covers, from and to."""
    aspect_ratio: tuple[float, float] = (0.75, 1.5)
    """Height over width of a block, from and to."""
    max_temporal_keep: float = 1.0
    """Only this first share of the tubelets may be context."""
    max_keep: int | None = None
    """Most context tokens; None: no limit."""
    complement: Literal["none", "targets", "context"] = "none"
    """`targets`: everything that is no context is predicted (full complement); `context`:
    everything that is not predicted is seen (predicted complement); `none`: what truncation to the
    batch's smallest counts cut away is neither."""
    inverted: bool = False
    """See the blocks, predict the rest."""

    def __post_init__(self) -> None:
        if self.num_blocks < 1:
            raise ConfigError(f"num_blocks is {self.num_blocks}; a mask has 1 block or more.")
        for name in ("spatial_scale", "temporal_scale"):
            low, high = getattr(self, name)
            if not 0 < low <= high <= 1:
                raise ConfigError(f"{name} is {low}..{high}; it must lie in 0..1, above 0.")
        low, high = self.aspect_ratio
        if not 0 < low <= high:
            raise ConfigError(f"aspect_ratio is {low}..{high}; it must be above 0.")
        if not 0 < self.max_temporal_keep <= 1:
            raise ConfigError(
                f"max_temporal_keep is {self.max_temporal_keep}; it is a share, above 0 up to 1."
            )
        if self.max_keep is not None and self.max_keep < 1:
            raise ConfigError(f"max_keep is {self.max_keep}; it must be 1 or more.")
        if self.complement not in ("none", "targets", "context"):
            raise ConfigError(
                f"complement is {self.complement!r}; choose none, targets or context."
            )


SHORT_RANGE = BlockMaskConfig(num_blocks=8, spatial_scale=(0.15, 0.15))
LONG_RANGE = BlockMaskConfig(num_blocks=2, spatial_scale=(0.7, 0.7))
"""The two kinds that V-JEPA 2 trains with (paper section 2; vjepa2 configs/train, c2963a4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimiserConfig:
    """How parameters are updated; rates are those of the schedule's peak."""

    lr: float = 5.25e-4
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    muon: bool = False
    """Muon for the matrices of the blocks, AdamW for the rest: fewer steps for small models."""
    muon_lr: float = 3e-3
    muon_weight_decay: float = 0.01

    def __post_init__(self) -> None:
        for name in ("lr", "eps", "muon_lr"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be above 0.")
        if not self.muon_weight_decay >= 0:
            raise ConfigError(f"muon_weight_decay is {self.muon_weight_decay}; 0 or more.")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ConfigError(f"betas are {self.betas}; each lies in 0..1, below 1.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskConfig:
    """What a step predicts. Shares are probabilities of one step."""

    future: float = 0.85
    """Share of steps about the future; the others predict tubes."""
    contexts: tuple[int, ...] = (4, 7)
    """Tubelets seen, of a step about the future."""
    ahead: tuple[int, ...] = (1, 2, 4)
    """Tubelets predicted at once after them."""
    rollout: float = 0.35
    """Share of the steps about the future that predict tubelet after tubelet, once that began."""
    rollout_steps: tuple[int, ...] = (2, 3, 4)
    rollout_after: float = 0.4
    """Part of the training before the first rollout."""
    tubes: tuple[BlockMaskConfig, ...] = (SHORT_RANGE, LONG_RANGE)
    tubelets: int = 8
    """Length of a clip in tubelets for tubes."""
    all_tubes: bool = False
    """Every step predicts tubes of every kind, and nothing else: V-JEPA 2's own recipe."""

    def __post_init__(self) -> None:
        for name in ("future", "rollout", "rollout_after"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it is a share, 0 to 1.")
        for name in ("contexts", "ahead", "rollout_steps"):
            values = getattr(self, name)
            if not values or min(values) < 1:
                raise ConfigError(f"{name} is {values}; give one number or more, each from 1.")
        if not self.tubes and (self.all_tubes or self.future < 1):
            raise ConfigError("Without any tubes, future must be 1 and all_tubes off.")

    @property
    def longest(self) -> int:
        """Tubelets that a clip must have."""
        ahead = max(*self.ahead, *self.rollout_steps)
        return max(self.tubelets, max(self.contexts) + ahead)


@dataclass(frozen=True, slots=True, kw_only=True)
class YardClipsConfig:
    """Clips of the `yard`, made as they are needed."""

    side: int = 64
    """Pixels."""
    fps: float = 4.0
    slow: tuple[float, float] = (0.0375, 0.1125)
    fast: tuple[float, float] = (0.05, 0.2)
    """Speeds of the balls, sides per second, from and to: those of the beginning and the end."""
    speed_up: tuple[float, float] = (0.2, 0.7)
    """Parts of the training between which the speeds move from `slow` to `fast`."""

    def __post_init__(self) -> None:
        low, high = self.speed_up
        if not 0 <= low <= high <= 1:
            raise ConfigError(f"speed_up is {low}..{high}; two parts of a training, 0 to 1.")


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainConfig:
    """A pre-training. Rates are given for the peak; times are steps."""

    steps: int = 2000
    batch: int = 16
    seed: int = 21
    warmup: int = 100
    start_factor: float = 0.01
    """First learning rate over the peak's."""
    final_factor: float = 0.02
    """Last learning rate over the peak's."""
    weight_decay: tuple[float, float] = (0.04, 0.04)
    """First and last."""
    ema: tuple[float, float] = (0.99, 0.999)
    """First and last momentum of the target encoder."""
    clip_grad: float = 1.0
    """Largest norm of the gradient; 0: not clipped."""
    loss: Literal["l1", "l2", "l1+l2"] = "l1"
    weighs_motion: bool = False
    consistency: float = 0.0
    fan_in_init: bool = False
    """Initial weights by each layer's inputs, random mask tokens, and a final norm of the encoder
    that stays (1, 0): for widths around 100."""
    whitened_patches: bool = False
    """Start the patch embedding at the whitened principal components of patches of the data."""
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    tasks: TaskConfig = field(default_factory=TaskConfig)
    data: YardClipsConfig = field(default_factory=YardClipsConfig)
    log_every: int = 10
    save_every: int = 50

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "log_every", "save_every"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be 1 or more.")
        if not 0 <= self.warmup <= self.steps:
            raise ConfigError(f"warmup is {self.warmup}; it lies in 0..{self.steps}, the steps.")
