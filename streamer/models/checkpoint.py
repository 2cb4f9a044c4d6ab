"""Tensors into modules, strictly: every key must be there, no other, each of the right shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import torch
from torch import Tensor, nn

from streamer.errors import CheckpointError, ConfigError
from streamer.models.keys import Shapes

__all__ = ["assign", "check_dtype", "check_shapes", "on_meta", "shapes_of"]

_LISTED = 8

Module = TypeVar("Module", bound=nn.Module)


def on_meta(build: Callable[[], Module]) -> Module:
    """A module without memory behind its parameters, to be filled by `assign`."""
    with torch.device("meta"):
        return build()


def shapes_of(tensors: Mapping[str, Tensor]) -> Shapes:
    return {key: tuple(tensor.shape) for key, tensor in tensors.items()}


def check_shapes(found: Shapes, expected: Shapes, *, what: str) -> None:
    """Compare the tensors of a checkpoint with what its config promises.

    Raises:
        CheckpointError: lists missing, unexpected and mis-shaped tensors by name.
    """
    missing = sorted(expected.keys() - found.keys())
    unexpected = sorted(found.keys() - expected.keys())
    wrong = [
        f"{key} is {list(found[key])}, should be {list(expected[key])}"
        for key in sorted(expected.keys() & found.keys())
        if found[key] != expected[key]
    ]
    kinds = {"missing": missing, "unexpected": unexpected, "mis-shaped": wrong}
    parts = [f"{len(keys)} {kind}: {_listed(keys)}" for kind, keys in kinds.items() if keys]
    if parts:
        raise CheckpointError(f"{what} does not fit its config. {'. '.join(parts)}.")


def _listed(keys: list[str]) -> str:
    more = f", and {len(keys) - _LISTED} more" if len(keys) > _LISTED else ""
    return "; ".join(keys[:_LISTED]) + more


def check_dtype(dtype: torch.dtype) -> None:
    """Raise `ConfigError` unless `dtype` can hold weights."""
    if not dtype.is_floating_point:
        raise ConfigError(f"Weights cannot be held as {dtype}; use float32, bfloat16 or float16.")


def assign(
    module: Module,
    tensors: Mapping[str, Tensor],
    *,
    what: str,
    dtype: torch.dtype,
    device: str | torch.device,
) -> Module:
    """Give the tensors to a module made by `on_meta`; returned in eval mode.

    Raises:
        CheckpointError: the tensors are not exactly those of the module.
        ConfigError: `dtype` cannot hold weights.
    """
    check_dtype(dtype)
    check_shapes(shapes_of(tensors), shapes_of(module.state_dict()), what=what)
    held = {key: tensor.to(device=device, dtype=dtype) for key, tensor in tensors.items()}
    module.load_state_dict(held, strict=True, assign=True)
    return module.eval()
