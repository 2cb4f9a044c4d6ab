"""Encoder outputs of upstream, GELU and SwiGLU."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from streamer.models.encoder import Encoder

pytestmark = pytest.mark.parity


@pytest.fixture(scope="module")
def gelu(published, sizes):
    file = published("encoder_gelu")
    encoder = Encoder(sizes(file.config))
    file.load(encoder, "encoder")
    return file, encoder


@torch.inference_mode()
def test_whole_clips_pictures_and_other_sizes(gelu, same) -> None:
    file, encoder = gelu
    for given, out in (
        ("x", "y"),
        ("x_nonsquare", "y_nonsquare"),
        ("x_zero", "y_zero"),
        ("image", "y_image"),
    ):
        same(encoder(file.given[given]), file.expected[out])


@torch.inference_mode()
def test_masks_keep_the_order_of_their_ids(gelu, same) -> None:
    file, encoder = gelu
    x = file.given["x"]
    for mask in ("mask", "mask_unsorted"):
        same(encoder(x, file.given[mask]), file.expected[f"y_{mask}"])
    both = [file.given["mask"], file.given["mask2"]]
    same(encoder(x, both), file.expected["y_two_masks"])
    found = encoder(file.given["x_nonsquare"], file.given["mask_nonsquare"])
    same(found, file.expected["y_nonsquare_mask"])


@torch.inference_mode()
def test_intermediate_layers(gelu, same) -> None:
    file, encoder = gelu
    layers = file.config["out_layers"]
    outputs = encoder(file.given["x"], out_layers=layers)
    assert len(outputs) == len(layers)
    for layer, found in zip(layers, outputs, strict=True):
        same(found, file.expected[f"y_layer{layer}"])


@torch.inference_mode()
def test_swiglu(published, sizes, same) -> None:
    file = published("encoder_swiglu")
    encoder = Encoder(sizes(file.config))
    file.load(encoder, "encoder")
    same(encoder(file.given["x"]), file.expected["y"])


@torch.inference_mode()
def test_the_fixture_separates_the_corrected_rotation(gelu, sizes) -> None:
    file, _ = gelu
    encoder = Encoder(replace(sizes(file.config), rope="interleaved"))
    file.load(encoder, "encoder")
    assert (encoder(file.given["x"]) - file.expected["y"]).abs().max() > 0.5


@torch.inference_mode()
def test_bf16_stays_near(gelu, sizes) -> None:
    file, _ = gelu
    encoder = Encoder(sizes(file.config))
    file.load(encoder, "encoder")
    found = encoder.bfloat16()(file.given["x"])
    assert found.dtype == torch.bfloat16
    difference = (found.float() - file.expected["y"]).abs()
    assert difference.max() < 0.3
    assert difference.mean() < 0.03
