"""Latents and futures between processes: torch tensors as NumPy views, bfloat16 as uint16.

The way of measured least cost through an object store: one copy when it is put, none when it is
got.
"""

# N tokens  D width  K horizons  P tokens per tubelet

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from streamer.errors import ShapeMismatch
from streamer.records import Latent
from streamer.wire import Packed, WireDtype, pack, unpack

__all__ = ["pack_latent", "pack_tokens", "read_tensor", "unpack_latent", "unpack_tokens"]

_DTYPES: Final[dict[torch.dtype, WireDtype]] = {
    torch.float32: "float32",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.uint8: "uint8",
    torch.int64: "int64",
}


def pack_latent(latent: Latent) -> Packed:
    """A latent as NumPy and header; on a CPU a view, from a GPU one copy."""
    array, dtype = _to_numpy(latent.tokens)
    return pack(
        array,
        dtype=dtype,
        stream=latent.stream,
        clip=latent.clip,
        model=latent.model,
        grid=latent.grid,
        normed=latent.normed,
    )


def unpack_latent(packed: Packed, *, device: str | torch.device = "cpu") -> Latent:
    """The inverse; on a CPU the tokens share memory with `packed` and must only be read.

    Raises:
        ShapeMismatch: not a packed latent.
    """
    header = packed.header
    if header.grid is None:
        raise ShapeMismatch("The packed array has no grid: it is not a latent.")
    return Latent(
        stream=header.stream,
        clip=header.clip,
        tokens=unpack_tokens(packed, device=device),
        normed=header.normed,
        grid=header.grid,
        model=header.model,
    )


def pack_tokens(tokens: Tensor) -> Packed:
    """Any tokens, such as a prior's `[K, P, D]`."""
    array, dtype = _to_numpy(tokens)
    return pack(array, dtype=dtype)


def unpack_tokens(packed: Packed, *, device: str | torch.device = "cpu") -> Tensor:
    """The inverse; shares memory as `unpack_latent` does."""
    tensor = read_tensor(unpack(packed))
    if packed.header.dtype == "bfloat16":
        tensor = tensor.view(torch.bfloat16)
    return tensor.to(device, non_blocking=True)


def read_tensor(array: NDArray[Any]) -> Tensor:
    """A tensor over an array that may be read-only; it must only be read."""
    return torch.from_numpy(np.asarray(_Alias(np.ascontiguousarray(array))))


class _Alias:
    """Shows an array as writable, since torch warns about every other one. Keeps it alive."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        interface = array.__array_interface__
        self.__array_interface__ = interface | {"data": (interface["data"][0], False)}


def _to_numpy(tokens: Tensor) -> tuple[NDArray[Any], WireDtype]:
    if tokens.dtype not in _DTYPES:
        raise ShapeMismatch(f"Tokens of {tokens.dtype} cannot travel.")
    host = tokens.detach().to("cpu").contiguous()
    carrier = host.view(torch.uint16) if host.dtype is torch.bfloat16 else host
    return carrier.numpy(), _DTYPES[tokens.dtype]
