"""Latents leave and arrive without changing, and without being copied on arrival."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from streamer.errors import ShapeMismatch
from streamer.records import Latent
from streamer.serving.transfer import (
    pack_latent,
    pack_tokens,
    read_tensor,
    unpack_latent,
    unpack_tokens,
)
from streamer.wire import from_bytes, to_bytes

pytestmark = pytest.mark.unit


def _latent(dtype: torch.dtype) -> Latent:
    return Latent(
        stream="cam",
        clip=3,
        tokens=torch.randn(8, 4).to(dtype),
        normed=False,
        grid=(2, 2, 2),
        model="f00d",
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_latents_come_back_as_they_were(dtype: torch.dtype) -> None:
    latent = _latent(dtype)
    found = unpack_latent(from_bytes(to_bytes(pack_latent(latent))))
    assert torch.equal(found.tokens, latent.tokens)
    assert found.tokens.dtype is dtype
    for name in ("stream", "clip", "normed", "grid", "model"):
        assert getattr(found, name) == getattr(latent, name)


def test_nothing_is_copied_in_one_process() -> None:
    latent = _latent(torch.bfloat16)
    found = unpack_latent(pack_latent(latent))
    assert found.tokens.data_ptr() == latent.tokens.data_ptr()


def test_tokens_of_inference_mode_travel() -> None:
    with torch.inference_mode():
        tokens = torch.randn(2, 3, 4)[:, 1:]
    assert torch.equal(unpack_tokens(pack_tokens(tokens)), tokens)


def test_read_only_arrays_become_tensors_without_a_word() -> None:
    array = np.arange(6, dtype=np.uint8)
    array.flags.writeable = False
    assert read_tensor(array).tolist() == list(range(6))
    assert read_tensor(array[::2]).tolist() == [0, 2, 4]


def test_the_array_outlives_its_name() -> None:
    tensor = read_tensor(np.full(100_000, 7, dtype=np.uint8))
    assert [np.zeros(100_000, dtype=np.uint8) for _ in range(20)]
    assert bool((tensor == 7).all())


def test_what_is_no_latent_is_refused() -> None:
    with pytest.raises(ShapeMismatch, match="grid"):
        unpack_latent(pack_tokens(torch.zeros(2, 3)))
    with pytest.raises(ShapeMismatch, match="cannot travel"):
        pack_tokens(torch.zeros(2, dtype=torch.complex64))
