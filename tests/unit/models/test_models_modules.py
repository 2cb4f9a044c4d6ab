"""Encoder, predictor, rotation tables and probes: shapes, order, refusals."""

from __future__ import annotations

import pytest
import torch

from streamer.errors import ConfigError, NumericalError, ShapeMismatch
from streamer.models.pooler import build_probe
from streamer.models.probe_config import ProbeConfig
from streamer.models.rope import Rope
from streamer.models.vjepa2 import VJepa2

pytestmark = pytest.mark.unit


def _pixels(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


@torch.inference_mode()
def test_a_picture_is_two_equal_frames_and_an_odd_frame_is_dropped(model: VJepa2) -> None:
    picture = _pixels(1, 3, 16, 16)
    twice = picture.unsqueeze(2).repeat(1, 1, 2, 1, 1)
    assert torch.equal(model.encoder(picture), model.encoder(twice))
    assert torch.equal(model.encoder(twice[:, :, :1]), model.encoder(twice))
    clip = _pixels(1, 3, 5, 16, 16)
    assert torch.equal(model.encoder(clip), model.encoder(clip[:, :, :4]))


@pytest.mark.parametrize(
    "shape", [(3, 4, 16), (1, 1, 4, 16, 16), (1, 3, 4, 16, 12), (1, 3, 0, 16, 16)]
)
def test_pixels_of_another_form(model: VJepa2, shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeMismatch, match="multiples of 8"):
        model.encoder(torch.zeros(shape))


@torch.inference_mode()
def test_all_ids_as_a_mask_change_nothing(model: VJepa2) -> None:
    pixels = _pixels(2, 3, 4, 16, 16)
    ids = torch.arange(8).expand(2, -1)
    torch.testing.assert_close(model.encoder(pixels, ids), model.encoder(pixels))
    order = torch.randperm(8, generator=torch.Generator().manual_seed(1))
    shuffled = model.encoder(pixels, order.expand(2, -1))
    torch.testing.assert_close(shuffled, model.encoder(pixels)[:, order], atol=1e-5, rtol=1e-4)


@torch.inference_mode()
def test_two_masks_are_mask_major(model: VJepa2) -> None:
    pixels = _pixels(2, 3, 4, 16, 16)
    one, two = torch.tensor([[0, 3], [1, 2]]), torch.tensor([[5], [7]])
    both = model.encoder(pixels, [one[:, :1], two])
    assert both.shape == (4, 1, 48)
    torch.testing.assert_close(both[2:], model.encoder(pixels, two), atol=1e-5, rtol=1e-4)


def test_masks_that_cannot_be(model: VJepa2) -> None:
    pixels = _pixels(2, 3, 4, 16, 16)
    good = torch.tensor([[0], [1]])
    with pytest.raises(ValueError, match=r"outside 0\.\.7"):
        model.encoder(pixels, torch.tensor([[0], [8]]))
    for bad in (good[:1], good[:, :0], good.float(), good[:, 0]):
        with pytest.raises(ShapeMismatch, match="masks must be int64"):
            model.encoder(pixels, bad)
    with pytest.raises(ShapeMismatch, match="same number"):
        model.encoder(pixels, [good, torch.tensor([[0, 1], [1, 2]])])
    with pytest.raises(ShapeMismatch, match="at least one"):
        model.encoder(pixels, [])


@torch.inference_mode()
def test_layers_come_with_the_final_norm(model: VJepa2) -> None:
    pixels = _pixels(1, 3, 4, 16, 16)
    first, last = model.encoder(pixels, out_layers=[0, 1])
    assert torch.equal(last, model.encoder(pixels))
    assert not torch.equal(first, last)
    for bad in ([], [2], [-1]):
        with pytest.raises(ValueError, match="out_layers"):
            model.encoder(pixels, out_layers=bad)


@torch.inference_mode()
def test_prediction_does_not_depend_on_the_order_of_ids(model: VJepa2) -> None:
    context = _pixels(2, 6, 48)
    ids = torch.arange(6).expand(2, -1)
    targets = torch.tensor([[9, 30], [100, 6]])
    expected = model.predictor(context, ids, targets)
    order = torch.tensor([4, 1, 5, 0, 3, 2])
    found = model.predictor(context[:, order], ids[:, order], targets.flip(1)).flip(1)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


@torch.inference_mode()
def test_mask_index_is_the_checkpoints_unless_given(make_model) -> None:
    arguments = (_pixels(1, 4, 48), torch.arange(4).unsqueeze(0), torch.tensor([[4, 5]]))
    model, other = make_model(), make_model(mask_index=2)
    assert torch.equal(model.predictor(*arguments), model.predictor(*arguments, mask_index=1))
    assert torch.equal(other.predictor(*arguments), model.predictor(*arguments, mask_index=5))
    assert not torch.equal(other.predictor(*arguments), model.predictor(*arguments))


def test_predictor_refuses_what_does_not_belong_together(model: VJepa2) -> None:
    context, ids = _pixels(1, 4, 48), torch.arange(4).unsqueeze(0)
    with pytest.raises(ShapeMismatch, match="Context must be"):
        model.predictor(context[..., :32], ids, ids)
    with pytest.raises(ShapeMismatch, match="4 context tokens came with 3"):
        model.predictor(context, ids[:, :3], ids)
    with pytest.raises(ShapeMismatch, match="target_ids"):
        model.predictor(context, ids, ids.expand(2, -1))
    with pytest.raises(ValueError, match="target_ids holds ids outside"):
        model.predictor(context, ids, ids - 1)


def test_bf16_comes_out_as_bf16(model: VJepa2) -> None:
    half = model.bfloat16()
    with torch.inference_mode():
        tokens = half.encoder(_pixels(1, 3, 4, 16, 16))
        ids = torch.arange(8).unsqueeze(0)
        assert half.predictor(tokens, ids, ids + 8).dtype == tokens.dtype == torch.bfloat16


@pytest.mark.parametrize("shape", [(2, 3, 4, 16, 16), (1, 3, 5, 8, 24)])
@torch.inference_mode()
def test_tubelets_as_a_product_are_the_convolution(model: VJepa2, shape: tuple[int, ...]) -> None:
    embed = model.encoder.patch_embed.double()
    pixels = _pixels(*shape).double()
    found, grid = embed(pixels)
    expected = embed.proj(pixels)
    assert grid == tuple(expected.shape[2:])
    torch.testing.assert_close(found, expected.flatten(2).transpose(1, 2))


def test_rotation_of_a_grid_is_made_once_and_usable_for_training(model: VJepa2) -> None:
    rope = model.encoder.rope
    with torch.inference_mode():
        first = rope.for_grid((2, 2, 2), device=torch.device("cpu"))
    assert rope.for_grid((2, 2, 2), device=torch.device("cpu")) is first
    assert not first.cos.is_inference()
    model.encoder(_pixels(1, 3, 4, 16, 16)).sum().backward()
    assert model.encoder.blocks[0].attn.qkv.weight.grad is not None


def test_rotation_tables_are_bounded() -> None:
    rope = Rope(head_dim=12, form="tiled")
    first = rope.for_grid((1, 1, 1), device=torch.device("cpu"))
    for steps in range(2, 40):
        rope.for_grid((steps, 1, 1), device=torch.device("cpu"))
    assert len(rope._grids) <= 16
    assert rope.for_grid((1, 1, 1), device=torch.device("cpu")) is not first


def test_equal_rows_share_one_table() -> None:
    rope = Rope(head_dim=12, form="tiled")
    ids = torch.arange(6)
    shared = rope.for_ids(ids.expand(3, -1), rows=2, columns=2)
    assert shared.cos.shape == (6, 12)
    assert rope.for_ids(ids.repeat(3, 1), rows=2, columns=2).cos.shape == (3, 1, 6, 12)


def test_too_narrow_heads() -> None:
    with pytest.raises(ConfigError, match="at least 12"):
        Rope(head_dim=11, form="tiled")


def test_probe_raises_on_damaged_tokens() -> None:
    config = ProbeConfig(hidden_size=8, num_attention_heads=2, depth=2, num_labels=3)
    probe = build_probe(config)
    assert probe(torch.zeros(2, 5, 8)).shape == (2, 3)
    with pytest.raises(NumericalError, match="not finite"):
        probe(torch.full((1, 5, 8), float("nan")))
    with pytest.raises(ShapeMismatch, match=r"\[B, N, 8\]"):
        probe(torch.zeros(1, 5, 9))
