"""The three networks of a pre-training, and the loss of one batch.

A step is a list of tasks. Each says what is seen and what is to be predicted of the same clips:
tubes as in V-JEPA, the future at once, or the future step by step as the service rolls it out.
"""

# B batch  T frames  N tokens  K context  M targets  P tokens per tubelet  D width

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from streamer.models.encoder import Encoder
from streamer.models.predictor import Predictor
from streamer.training.ema import target_of
from streamer.training.masks import Masks
from streamer.training.objective import LossKind, error, motion_weights, normed

__all__ = ["Learner", "RolloutTask", "Task", "TubeTask"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TubeTask:
    """Predict the targets from the context in one call."""

    masks: Masks
    mask_index: int = 0
    is_future: bool = False
    """The targets are the tubelets right after the context, whole and in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutTask:
    """Predict tubelet after tubelet, each prediction joining the context while the oldest leaves:
    what the service does, with the gradient through all of it."""

    context: int
    """Tubelets seen."""
    steps: int
    """Tubelets predicted, one by one."""
    mask_index: int = 0


Task = TubeTask | RolloutTask


class Learner(nn.Module):
    """Encoder, predictor and target encoder.

    Args:
        encoder, predictor: trained in place.
        loss: how errors are measured.
        weighs_motion: future targets that change count more.
        consistency: weight of a second loss: what the encoder makes of the context alone shall be
            what the target encoder makes of it within the whole clip. Without it features that
            tell their place in the window are a short cut.
    """

    def __init__(
        self,
        encoder: Encoder,
        predictor: Predictor,
        *,
        loss: LossKind = "l1",
        weighs_motion: bool = False,
        consistency: float = 0.0,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.predictor = predictor
        self.target_encoder = target_of(encoder)
        self._loss: LossKind = loss
        self._weighs_motion = weighs_motion
        self._consistency = consistency

    def forward(self, pixels: Tensor, tasks: list[Task]) -> Tensor:
        """Loss of one batch -> scalar, the mean over its tasks.

        Args:
            pixels: normalised, `float [B, 3, T, H, W]`.

        Source: vjepa2 app/vjepa/train.py::train, train_step (c2963a4), identical for tube tasks
            with `l1` and the other options off; differs in the options and in rollout tasks.
        """
        truth_BND = self.targets(pixels)
        losses = [
            self._tubes(pixels, truth_BND, task)
            if isinstance(task, TubeTask)
            else self._rollout(pixels, truth_BND, task)
            for task in tasks
        ]
        return torch.stack(losses).mean()

    @torch.no_grad()
    def targets(self, pixels: Tensor) -> Tensor:
        """Layer-normed latents of the whole clips, `[B, N, D]`."""
        return normed(self.target_encoder(pixels))

    def _tubes(self, pixels: Tensor, truth_BND: Tensor, task: TubeTask) -> Tensor:
        context_ids, target_ids = task.masks.context_ids, task.masks.target_ids
        context_BKD = self.encoder(pixels, context_ids)
        predicted = self.predictor(context_BKD, context_ids, target_ids, mask_index=task.mask_index)
        target_BMD = _at(truth_BND, target_ids)
        weights = None
        if task.is_future and self._weighs_motion:
            places = self.predictor.grid_size**2
            weights = motion_weights(target_BMD, _at(truth_BND, context_ids)[:, -places:])
        found = error(predicted, target_BMD, kind=self._loss, weights_BM=weights)
        return found + self._agreement(context_BKD, _at(truth_BND, context_ids))

    def _rollout(self, pixels: Tensor, truth_BND: Tensor, task: RolloutTask) -> Tensor:
        places = self.predictor.grid_size**2
        count = task.context * places
        ids = torch.arange(count + places, device=pixels.device).expand(len(pixels), -1)
        context_ids, next_ids = ids[:, :count], ids[:, count:]
        context_BKD = self.encoder(pixels, context_ids)
        before = truth_BND[:, count - places : count]
        window, losses = context_BKD, []
        for step in range(task.steps):
            predicted = normed(
                self.predictor(window, context_ids, next_ids, mask_index=task.mask_index)
            )
            begin = count + step * places
            target = truth_BND[:, begin : begin + places]
            weights = motion_weights(target, before) if self._weighs_motion else None
            losses.append(error(predicted, target, kind=self._loss, weights_BM=weights))
            window = torch.cat([window[:, places:], predicted], dim=1)
        agreement = self._agreement(context_BKD, truth_BND[:, :count])
        return torch.stack(losses).mean() + agreement

    def _agreement(self, context_BKD: Tensor, truth_BKD: Tensor) -> Tensor | float:
        if not self._consistency:
            return 0.0
        return self._consistency * (normed(context_BKD) - truth_BKD).abs().mean()


def _at(tokens_BND: Tensor, ids_BK: Tensor) -> Tensor:
    return tokens_BND.gather(1, ids_BK.unsqueeze(-1).expand(-1, -1, tokens_BND.shape[-1]))
