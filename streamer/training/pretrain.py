"""Pre-training: encoder, masked predictor and EMA target, step after step.

Everything a step draws comes from the seed and the step's number, so a training that was killed and
resumed goes on exactly as if nothing had happened.
"""

# B batch  T frames

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from streamer.errors import NumericalError
from streamer.latents.preprocess import MEAN, STD
from streamer.models.config import VJepa2Config
from streamer.models.initialise import initialise
from streamer.models.vjepa2 import VJepa2
from streamer.training.checkpoint import read_checkpoint, write_checkpoint
from streamer.training.config import PretrainConfig
from streamer.training.ema import follow
from streamer.training.learner import Learner
from streamer.training.optimiser import make_optimisers
from streamer.training.schedule import EmaMomentum, HalfCosine, WarmupCosine
from streamer.training.tasks import Tasks
from streamer.training.whiten import whiten
from streamer.training.yard_clips import YardClips

__all__ = ["Pretraining", "Progress", "normalised"]

_MASK_TOKEN_STD = 0.5
_WHITENING_BATCHES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One step, as it is logged."""

    step: int
    """From 1."""
    loss: float
    lr: float
    weight_decay: float
    momentum: float
    grad_norm: float
    token_std: float
    """Of the targets' channels over tokens, mean: near 0 means collapse."""


class Pretraining:
    """One training in a folder.

    Args:
        model: sizes; `frames_per_clip` of them is what the service will feed.
        folder: for `last.pt`; an existing one is gone on with.

    Raises:
        ConfigError: `last.pt` is of another configuration, or the settings contradict each other.
        CheckpointError: it is damaged.
    """

    def __init__(
        self, model: VJepa2Config, config: PretrainConfig, *, folder: Path, device: str = "cpu"
    ) -> None:
        self.config = config
        self.step = 0
        self._device = torch.device(device)
        self._path = folder / "last.pt"
        self._network = _fresh(model, config)
        self._learner = Learner(
            self._network.encoder,
            self._network.predictor,
            loss=config.loss,
            weighs_motion=config.weighs_motion,
            consistency=config.consistency,
        ).to(self._device)
        self._learner.train()
        self._optimisers = make_optimisers(
            (self._learner.encoder, self._learner.predictor), config.optimiser
        )
        side = self._network.config.grid_size
        self._tasks = Tasks(config.tasks, places=(side, side), total=config.steps, seed=config.seed)
        self._clips = YardClips(
            config.data,
            batch=config.batch,
            frames=config.tasks.longest * self._network.config.tubelet_size,
            total=config.steps,
            seed=config.seed,
        )
        self._rates = _Rates(config)
        if self._path.exists():
            self._resume()
        elif config.whitened_patches:
            self._whiten()

    def run(self, *, told: Callable[[Progress], None], workers: int = 0) -> VJepa2:
        """Train to the end, saving as it goes.

        Args:
            told: called after every step.
            workers: processes that make the data ahead of time; 0: none.

        Returns:
            The model with the target encoder's weights, in eval mode.

        Raises:
            NumericalError: a loss is not finite; `last.pt` is of before.
            CheckpointError: it cannot be saved.
        """
        loader = DataLoader(
            self._clips,
            batch_size=None,
            sampler=range(self.step, self.config.steps),
            num_workers=workers,
            prefetch_factor=4 if workers else None,
        )
        for clips in loader:
            told(self._once(clips))
            if self.step % self.config.save_every == 0 or self.step == self.config.steps:
                self.save()
        return self.model()

    def model(self) -> VJepa2:
        """As trained so far: the target encoder and the predictor."""
        trained = VJepa2(self._network.config, name=self._network.name)
        trained.encoder.load_state_dict(self._learner.target_encoder.state_dict())
        trained.predictor.load_state_dict(self._learner.predictor.state_dict())
        return trained.eval()

    def save(self) -> None:
        """Write `last.pt`. Raises `CheckpointError`."""
        write_checkpoint(
            self._path,
            {
                "config": self._identity(),
                "step": self.step,
                "learner": self._learner.state_dict(),
                "optimisers": self._optimisers.state_dict(),
            },
        )

    def _once(self, clips_BTHWC: Tensor) -> Progress:
        rates = self._rates.at(self.step + 1)
        self._optimisers.set(lr=rates.lr, muon_lr=rates.muon_lr, weight_decay=rates.weight_decay)
        pixels = normalised(clips_BTHWC.to(self._device))
        loss = self._learner(pixels, self._tasks.at(self.step, batch=len(pixels)))
        value = float(loss.detach())
        if not math.isfinite(value):
            raise NumericalError(
                f"The loss of step {self.step + 1} is {value}. {self._path} holds the last good "
                "state; lower the learning rate, or clip gradients harder."
            )
        loss.backward()
        norm = self._clipped()
        self._optimisers.step()
        follow(self._learner.target_encoder, self._learner.encoder, momentum=rates.momentum)
        self.step += 1
        return Progress(
            step=self.step,
            loss=value,
            lr=rates.lr,
            weight_decay=rates.weight_decay,
            momentum=rates.momentum,
            grad_norm=norm,
            token_std=self._token_std(pixels) if self.step % self.config.log_every == 0 else 0.0,
        )

    def _clipped(self) -> float:
        parameters = [p for p in self._learner.parameters() if p.grad is not None]
        most = self.config.clip_grad or math.inf
        return float(torch.nn.utils.clip_grad_norm_(parameters, most))

    @torch.no_grad()
    def _token_std(self, pixels: Tensor) -> float:
        tokens = self._learner.targets(pixels[:4])
        return float(tokens.flatten(0, 1).std(dim=0).mean())

    def _resume(self) -> None:
        state = read_checkpoint(self._path, config=self._identity())
        self._learner.load_state_dict(state["learner"])
        self._optimisers.load_state_dict(state["optimisers"])
        self.step = int(state["step"])

    def _whiten(self) -> None:
        far = [self._clips[step] for step in range(_WHITENING_BATCHES)]
        whiten(self._learner.encoder.patch_embed, normalised(torch.cat(far)))
        self._learner.target_encoder.load_state_dict(self._learner.encoder.state_dict())

    def _identity(self) -> dict[str, Any]:
        """What a checkpoint must agree on."""
        ours: dict[str, Any] = asdict(self.config)
        del ours["log_every"], ours["save_every"]
        return {"model": self._network.config.to_dict(), "training": ours}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rate:
    lr: float
    muon_lr: float
    weight_decay: float
    momentum: float


class _Rates:
    def __init__(self, config: PretrainConfig) -> None:
        self._config = config
        self._factor = WarmupCosine(
            start=config.start_factor,
            peak=1.0,
            final=config.final_factor,
            warmup=config.warmup,
            total=config.steps,
        )
        first, last = config.weight_decay
        self._decay = HalfCosine(start=first, final=last, total=config.steps)
        self._momentum = EmaMomentum(start=config.ema[0], final=config.ema[1], total=config.steps)

    def at(self, i: int) -> _Rate:
        factor, optimiser = self._factor(i), self._config.optimiser
        return _Rate(
            lr=factor * optimiser.lr,
            muon_lr=factor * optimiser.muon_lr,
            weight_decay=self._decay(i),
            momentum=self._momentum(i),
        )


def _fresh(sizes: VJepa2Config, config: PretrainConfig) -> VJepa2:
    network = VJepa2(replace(sizes, trained=True))
    initialise(
        network,
        seed=config.seed,
        std=None if config.fan_in_init else sizes.initializer_range,
    )
    if config.fan_in_init:
        generator = torch.Generator().manual_seed(config.seed)
        for token in network.predictor.mask_tokens:
            token.data.normal_(std=_MASK_TOKEN_STD, generator=generator)
        network.encoder.norm.requires_grad_(False)
    return network


def normalised(clips_BTHWC: Tensor) -> Tensor:
    """`uint8 [B, T, H, W, 3]` -> `float32 [B, 3, T, H, W]` as the encoder takes it."""
    mean, std = torch.tensor(MEAN), torch.tensor(STD)
    scale = (1 / (255 * std)).to(clips_BTHWC.device)
    shift = (-mean / std).to(clips_BTHWC.device)
    return torch.addcmul(shift, clips_BTHWC.float(), scale).permute(0, 4, 1, 2, 3)
