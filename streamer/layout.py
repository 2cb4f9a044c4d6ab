"""How the service is laid out on a Ray cluster: placement, replicas, sizes. Imports no library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from streamer.errors import ConfigError

__all__ = ["LayoutConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutConfig:
    """What `streamer serve` asks of Ray; `deployments/config.py` turns it into Serve options."""

    address: str = ""
    """Running Ray cluster to join (`auto` or `host:port`); empty starts one of our own, unless
    `RAY_ADDRESS` names one."""
    placement: Literal["fused", "split"] = "fused"
    """`fused`: encoder and rollout in one replica, no transfer between them. `split`: two pools
    that scale separately."""
    encoder_replicas: int = 1
    """Size of the encoder pool of `split`."""
    encoder_max_replicas: int = 0
    """Most encoders of `split`: more are started while each has more than two clips in hand, and
    stopped after ten quiet minutes. 0 keeps the pool at `encoder_replicas`."""
    rollout_replicas: int = 1
    """Size of its rollout pool."""
    encoder_gpus: float = 0.0
    """GPUs per encoder replica, and of `fused`. Fractions share a GPU."""
    rollout_gpus: float = 0.0
    """GPUs per rollout replica of `split`."""
    streams_per_replica: int = 8
    """Streams that one ingest replica decodes at once."""
    ingest_replicas: int = 4
    """Most ingest replicas; there is one at first, more follow the number of streams."""
    edge_replicas: int = 1
    """Replicas of the gateway."""
    object_store_mb: int = 512
    """Shared memory of a Ray of our own: a stream of 256-pixel clips of a large model keeps up to
    80 MB in flight in bf16, 130 MB in fp32: two clips and three latents."""
    ready_s: float = 300.0
    """How long replicas may take until everything is ready, loading weights included, seconds."""

    def __post_init__(self) -> None:
        for name in (
            "encoder_replicas",
            "rollout_replicas",
            "streams_per_replica",
            "ingest_replicas",
            "edge_replicas",
        ):
            if getattr(self, name) < 1:
                raise ConfigError(f"ray.{name} must be at least 1, not {getattr(self, name)}.")
        if 0 != self.encoder_max_replicas < self.encoder_replicas:
            raise ConfigError(
                f"ray.encoder_max_replicas is {self.encoder_max_replicas}, but the pool begins with"
                f" ray.encoder_replicas ({self.encoder_replicas}); 0 keeps it at that size."
            )
        if self.placement == "fused" and max(self.most_encoders, self.rollout_replicas) > 1:
            raise ConfigError(
                "ray.placement 'fused' is one replica that holds latents in its own memory."
                " For several encoder or rollout replicas choose ray.placement 'split'."
            )
        if min(self.encoder_gpus, self.rollout_gpus) < 0:
            raise ConfigError("ray.encoder_gpus and ray.rollout_gpus cannot be negative.")
        if self.object_store_mb < 80:
            raise ConfigError(
                f"ray.object_store_mb is {self.object_store_mb}, but Ray needs at least 80."
            )
        if self.ready_s <= 0:
            raise ConfigError(f"ray.ready_s must be more than 0, not {self.ready_s}.")

    @property
    def most_encoders(self) -> int:
        """Encoder replicas when the pool is largest."""
        return max(self.encoder_replicas, self.encoder_max_replicas)
