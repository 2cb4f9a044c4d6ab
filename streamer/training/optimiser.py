"""Which parameters are updated how."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from streamer.training.config import OptimiserConfig

__all__ = ["Optimisers", "make_optimisers"]

_MATRICES = ("qkv.weight", "proj.weight", "fc1.weight", "fc2.weight", "fc3.weight")


@dataclass(frozen=True, slots=True)
class Optimisers:
    """AdamW, and Muon for the blocks' matrices where it is asked for, as one."""

    adamw: Optimizer
    muon: Optimizer | None = None

    def set(self, *, lr: float, muon_lr: float, weight_decay: float) -> None:
        """This step's values; groups without decay keep none."""
        for group in self.adamw.param_groups:
            group["lr"] = lr
            group["weight_decay"] = weight_decay if group["decays"] else 0.0
        if self.muon is not None:
            for group in self.muon.param_groups:
                group["lr"] = muon_lr

    def step(self) -> None:
        """Update, then forget the gradients."""
        for each in self._all():
            each.step()
            each.zero_grad(set_to_none=True)

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {
            "adamw": self.adamw.state_dict(),
            "muon": None if self.muon is None else self.muon.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From a checkpoint of the same configuration."""
        self.adamw.load_state_dict(state["adamw"])
        if self.muon is not None:
            self.muon.load_state_dict(state["muon"])

    def _all(self) -> Iterable[Optimizer]:
        return (self.adamw,) if self.muon is None else (self.adamw, self.muon)


def make_optimisers(modules: Iterable[nn.Module], config: OptimiserConfig) -> Optimisers:
    """Groups of the parameters that need gradients.

    Decayed are those with more than one dimension whose name has no "bias" in it, mask tokens
    included.

    Source: vjepa2 app/vjepa/utils.py::init_opt (c2963a4), same groups; differs in that Muon may
        take the matrices of the blocks.
    """
    decayed: list[nn.Parameter] = []
    plain: list[nn.Parameter] = []
    matrices: list[nn.Parameter] = []
    for module in modules:
        for name, parameter in module.named_parameters():
            if not parameter.requires_grad:
                continue
            if config.muon and "blocks." in name and name.endswith(_MATRICES):
                matrices.append(parameter)
            elif parameter.ndim == 1 or "bias" in name:
                plain.append(parameter)
            else:
                decayed.append(parameter)
    adamw = torch.optim.AdamW(
        [
            {"params": decayed, "decays": True},
            {"params": plain, "decays": False},
        ],
        lr=config.lr,
        betas=config.betas,
        eps=config.eps,
    )
    if not matrices:
        return Optimisers(adamw)
    muon = torch.optim.Muon(
        matrices,
        lr=config.muon_lr,
        weight_decay=config.muon_weight_decay,
        adjust_lr_fn="match_rms_adamw",
    )
    return Optimisers(adamw, muon)
