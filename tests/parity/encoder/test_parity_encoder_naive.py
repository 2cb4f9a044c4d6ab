"""The encoder against a naive one: separate heads, a whole score matrix, rotation per layer."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import gelu, layer_norm

from streamer.models.config import VJepa2Config
from streamer.models.encoder import Encoder
from streamer.models.initialise import initialise

pytestmark = pytest.mark.parity

CONFIG = VJepa2Config(
    patch_size=8,
    crop_size=24,
    frames_per_clip=8,
    hidden_size=48,
    num_hidden_layers=2,
    num_attention_heads=2,
    pred_hidden_size=24,
    pred_num_hidden_layers=1,
    pred_num_attention_heads=2,
)


def _rotate_axis(x: Tensor, positions: Tensor) -> Tensor:
    """Upstream's form: repeat the frequencies whole, pair neighbours."""
    half = x.shape[-1] // 2
    omega = 1.0 / 10000 ** (torch.arange(half, dtype=x.dtype) / half)
    angle = (positions[:, None] * omega).repeat(1, 2)
    pairs = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)
    return x * angle.cos() + pairs * angle.sin()


def _rotate(x: Tensor, ids: Tensor, rows: int, columns: int) -> Tensor:
    a = 2 * (x.shape[-1] // 3 // 2)
    depth, place = ids // (rows * columns), ids % (rows * columns)
    slices = [x[..., i * a : (i + 1) * a] for i in range(3)]
    axes = (depth, place // columns, place % columns)
    turned = [_rotate_axis(s, p) for s, p in zip(slices, axes, strict=True)]
    return torch.cat([*turned, x[..., 3 * a :]], dim=-1)


def _reference(state: dict[str, Tensor], pixels: Tensor, ids: Tensor | None) -> Tensor:
    """One clip `[C, T, H, W]` in float64."""
    w = {key: tensor.double() for key, tensor in state.items()}
    kernel = w["patch_embed.proj.weight"]
    tubelet, patch = kernel.shape[2], kernel.shape[3]
    blocks = pixels.double().unfold(1, tubelet, tubelet).unfold(2, patch, patch)
    blocks = blocks.unfold(3, patch, patch)  # [C, S, h, w, t, p, p]
    _, _, rows, columns = blocks.shape[:4]
    tokens = blocks.permute(1, 2, 3, 0, 4, 5, 6).flatten(0, 2).flatten(1)
    x = tokens @ kernel.flatten(1).mT + w["patch_embed.proj.bias"]
    ids = torch.arange(len(x)) if ids is None else ids
    x = x[ids]

    def linear(name: str, v: Tensor) -> Tensor:
        return v @ w[f"{name}.weight"].mT + w[f"{name}.bias"]

    def norm(name: str, v: Tensor) -> Tensor:
        return layer_norm(v, v.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], 1e-6)

    for i in range(CONFIG.num_hidden_layers):
        b = f"blocks.{i}"
        q, k, v = linear(f"{b}.attn.qkv", norm(f"{b}.norm1", x)).chunk(3, dim=-1)
        heads = []
        for head in range(CONFIG.num_attention_heads):
            d = q.shape[-1] // CONFIG.num_attention_heads
            cut = slice(head * d, (head + 1) * d)
            turned = [_rotate(t[:, cut], ids, rows, columns) for t in (q, k)]
            scores = turned[0] @ turned[1].mT / d**0.5
            heads.append(scores.softmax(dim=-1) @ v[:, cut])
        x = x + linear(f"{b}.attn.proj", torch.cat(heads, dim=-1))
        x = x + linear(f"{b}.mlp.fc2", gelu(linear(f"{b}.mlp.fc1", norm(f"{b}.norm2", x))))
    return norm("norm", x)


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    encoder = Encoder(CONFIG)
    initialise(encoder, seed=3, std=0.2)
    return encoder.eval()


@pytest.mark.parametrize("shape", [(8, 24, 24), (4, 16, 40)])
@torch.inference_mode()
def test_clips(encoder: Encoder, shape: tuple[int, int, int]) -> None:
    pixels = torch.randn(2, 3, *shape, generator=torch.Generator().manual_seed(4))
    found = encoder(pixels)
    for row, clip in zip(found, pixels, strict=True):
        expected = _reference(encoder.state_dict(), clip, None)
        torch.testing.assert_close(row.double(), expected, atol=3e-5, rtol=1e-4)


@torch.inference_mode()
def test_masks_with_other_ids_per_row(encoder: Encoder) -> None:
    generator = torch.Generator().manual_seed(5)
    pixels = torch.randn(2, 3, 8, 24, 24, generator=generator)
    ids = torch.stack([torch.randperm(36, generator=generator)[:10] for _ in range(2)])
    found = encoder(pixels, ids)
    for row, clip, kept in zip(found, pixels, ids, strict=True):
        expected = _reference(encoder.state_dict(), clip, kept)
        torch.testing.assert_close(row.double(), expected, atol=3e-5, rtol=1e-4)
