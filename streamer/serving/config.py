"""How the models are run for many streams."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamer.errors import ConfigError
from streamer.futures.config import RolloutConfig, SurpriseConfig
from streamer.latents.config import EncoderConfig, PictureConfig

__all__ = ["BatchConfig", "DeviceConfig", "ServingConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceConfig:
    """The one thread that computes."""

    threads: int = 0
    """Threads of torch inside one operation; 0 leaves torch's own choice. With several replicas
    on a machine: cores / replicas."""

    def __post_init__(self) -> None:
        if self.threads < 0:
            raise ConfigError(f"threads is {self.threads}; it must be 0 or more.")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchConfig:
    """One queue in front of the device."""

    max_batch: int = 1
    """Items computed together. On a CPU batching gains nothing and costs latency."""
    max_waiting: int = 32
    """Items waiting; one more is refused with `CapacityError`."""

    def __post_init__(self) -> None:
        for name in ("max_batch", "max_waiting"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be 1 or more.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingConfig:
    """Everything that `streamer.serving` needs besides a model and a store."""

    device: DeviceConfig = field(default_factory=DeviceConfig)
    """The thread that computes."""
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    """Clips to latents."""
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    """Latents to futures."""
    surprise: SurpriseConfig = field(default_factory=SurpriseConfig)
    """What is compared with what came before."""
    pictures: PictureConfig = field(default_factory=PictureConfig)
    """Latents as colours."""
    encode_batch: BatchConfig = field(default_factory=BatchConfig)
    """Clips that wait for the encoder."""
    rollout_batch: BatchConfig = field(default_factory=BatchConfig)
    """Latents that wait for the rollout."""
