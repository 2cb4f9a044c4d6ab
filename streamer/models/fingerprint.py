"""Which weights are these? A hash over tensors that stays the same over files and machines."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch
from torch import Tensor

__all__ = ["fingerprint", "hash_tensors"]


def hash_tensors(tensors: Mapping[str, Tensor]) -> str:
    """sha256 (64 hex digits) over names, dtypes, shapes and bytes, in the order of the names."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        flat = tensor.cpu().contiguous().reshape(-1).view(torch.uint8)
        digest.update(flat.numpy().data)
    return digest.hexdigest()


def fingerprint(tensors: Mapping[str, Tensor], *, crop: int, tubelet: int) -> str:
    """First 12 hex digits of the sha256 of an encoder's tensors, crop and tubelet.

    The dtype is part of it: the same weights held as bf16 are another model, since latents of the
    two are not interchangeable to the last digit.
    """
    text = f"{hash_tensors(tensors)} crop={crop} tubelet={tubelet}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]
