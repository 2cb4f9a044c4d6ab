"""Pre-processing of upstream's evaluations, of its robot data and of transformers."""

from __future__ import annotations

import pytest

from streamer.latents.preprocess import (
    droid_square,
    eval_arrays,
    eval_tensors,
    hf_processor,
    multiview,
    short_side,
)

pytestmark = pytest.mark.parity

EXACT = 1e-5
"""The published tolerance is 0.02, one level of 255; all of these are exact instead."""


@pytest.fixture(scope="module")
def file(published):
    return published("preprocess")


@pytest.mark.parametrize(
    ("transform", "given", "expected"),
    [
        (eval_arrays, "video_u8", "eval_numpy_cv2"),
        (eval_tensors, "video_u8", "eval_tensor"),
        (hf_processor, "video_u8", "hf_processor"),
        (droid_square, "square_u8", "droid_square"),
    ],
)
def test_transform(file, same, transform, given: str, expected: str) -> None:
    crop = file.config["crop_size"]
    same(transform(file.given[given], crop=crop), file.expected[expected], atol=EXACT, rtol=0)


def test_multiview(file, same) -> None:
    views = multiview(file.given["video_u8"], crop=file.config["crop_size"], views=3)
    for i, view in enumerate(views):
        same(view, file.expected[f"multiview_numpy_{i}"], atol=EXACT, rtol=0)


def test_short_side(file) -> None:
    assert short_side(file.config["crop_size"]) == file.config["short_side"]
    assert (short_side(256), short_side(384)) == (292, 438)
