"""Window and rollout: what slides, what is marked, what is refused."""

from __future__ import annotations

import pytest
import torch

from streamer.errors import ConfigError, HorizonUnreachable, ShapeMismatch
from streamer.futures.config import RolloutConfig
from streamer.futures.rollout import Rollout
from streamer.futures.window import TokenWindow, newest, token_ids
from streamer.models.config import VJepa2Config
from streamer.models.vjepa2 import VJepa2

pytestmark = pytest.mark.unit

TUBELETS, SIDE = 4, 2
PLACES = SIDE**2
GRID = (TUBELETS, SIDE, SIDE)


@pytest.fixture(scope="module")
def model() -> VJepa2:
    torch.manual_seed(0)
    config = VJepa2Config(
        crop_size=32,
        frames_per_clip=2 * TUBELETS,
        hidden_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        pred_hidden_size=24,
        pred_num_hidden_layers=1,
        pred_num_attention_heads=2,
    )
    return VJepa2(config).eval()


def _latent(tubelets: int = TUBELETS) -> torch.Tensor:
    return torch.randn(tubelets * PLACES, 24, generator=torch.Generator().manual_seed(3))


def test_the_window_slides_without_touching_what_it_gave() -> None:
    context = torch.arange(6.0).reshape(1, 6, 1)
    window = TokenWindow(context, room=4)
    first = window.append(torch.tensor([[[10.0], [11.0]]]))
    assert window.tokens.flatten().tolist() == [2, 3, 4, 5, 10, 11]
    window.append(torch.tensor([[[12.0], [13.0]]]))
    assert window.tokens.flatten().tolist() == [4, 5, 10, 11, 12, 13]
    assert first.flatten().tolist() == [10, 11]
    assert context.flatten().tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="room"):
        window.append(torch.zeros(1, 1, 1))


def test_newest_and_ids() -> None:
    tokens = torch.arange(12).reshape(1, 12, 1)
    assert newest(tokens, tubelets=2, places=4).flatten().tolist() == list(range(4, 12))
    ids = token_ids(3, 2, batch=2, device=torch.device("cpu"))
    assert ids.tolist() == [[3, 4], [3, 4]]
    assert ids.stride(0) == 0


def test_each_future_comes_as_it_is_made(model: VJepa2) -> None:
    rollout = Rollout(model)
    calls = []
    handle = model.predictor.register_forward_hook(lambda *_: calls.append(1))
    futures = rollout.contiguous(_latent(), grid=GRID, fps=4.0, steps=3)
    first = next(futures)
    assert len(calls) == 1
    assert (first.step, first.horizon_s, first.tokens.shape) == (1, 0.5, (PLACES, 24))
    kept = first.tokens.clone()
    rest = list(futures)
    handle.remove()
    assert [future.horizon_s for future in rest] == [1.0, 1.5]
    assert torch.equal(first.tokens, kept)
    assert not torch.is_inference_mode_enabled()


def test_only_the_default_context_stays_inside_what_was_trained(model: VJepa2) -> None:
    wide = Rollout(model, config=RolloutConfig(context_tubelets=TUBELETS))
    (future,) = wide.contiguous(_latent(), grid=GRID, fps=4.0, steps=1)
    assert future.is_extrapolated
    (near,) = Rollout(model).contiguous(_latent(), grid=GRID, fps=4.0, steps=1)
    assert not near.is_extrapolated
    long = (TUBELETS + 1, SIDE, SIDE)  # the encoder went further than it was trained
    (beyond,) = Rollout(model).contiguous(_latent(long[0]), grid=long, fps=4.0, steps=1)
    assert beyond.is_extrapolated
    inside = Rollout(model).gap(_latent(2), grid=(2, SIDE, SIDE), fps=4.0, gaps=[0, 1])
    assert not any(future.is_extrapolated for future in inside)
    outside = list(Rollout(model).gap(_latent(3), grid=(3, SIDE, SIDE), fps=4.0, gaps=[0, 1]))
    assert [future.is_extrapolated for future in outside] == [False, True]


def test_only_the_newest_tubelets_matter(model: VJepa2) -> None:
    one, other = _latent(), _latent()
    other[:PLACES] += 1.0
    found = [
        next(Rollout(model).contiguous(each, grid=GRID, fps=4.0, steps=1)).tokens
        for each in (one, other)
    ]
    assert torch.equal(*found)


def test_position_tables_are_made_once(model: VJepa2) -> None:
    rollout = Rollout(model)
    made = []
    rotation = model.predictor.rotation

    def counted(*ids):
        made.append(1)
        return rotation(*ids)

    model.predictor.rotation = counted
    try:
        for _ in range(2):
            list(rollout.contiguous(_latent(), grid=GRID, fps=4.0, steps=3))
    finally:
        del model.predictor.rotation
    assert len(made) == 1


def test_the_mask_index_is_passed_on(model: VJepa2) -> None:
    with torch.no_grad():
        for i, token in enumerate(model.predictor.mask_tokens):
            token.fill_(float(i))
    found = [
        next(
            Rollout(model, config=RolloutConfig(mask_index=index)).contiguous(
                _latent(), grid=GRID, fps=4.0, steps=1
            )
        ).tokens
        for index in (None, 1, 0)
    ]
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


@pytest.mark.parametrize(
    ("shape", "grid"),
    [
        ((TUBELETS * PLACES, 23), GRID),
        ((TUBELETS * PLACES + 1, 24), GRID),
        ((TUBELETS * PLACES, 24), (2, 2, 4)),
        ((1, 1, TUBELETS * PLACES, 24), GRID),
        ((0, 24), (0, 2, 2)),
    ],
)
def test_latents_that_do_not_fit(model: VJepa2, shape, grid) -> None:
    with pytest.raises(ShapeMismatch, match="found"):
        Rollout(model).contiguous(torch.zeros(shape), grid=grid, fps=4.0, steps=1)


def test_steps_out_of_reach(model: VJepa2) -> None:
    with pytest.raises(HorizonUnreachable) as caught:
        Rollout(model).contiguous(_latent(), grid=GRID, fps=4.0, steps=TUBELETS)
    assert caught.value.largest_s == 1.5
    with pytest.raises(HorizonUnreachable):
        Rollout(model).gap(_latent(), grid=GRID, fps=4.0, gaps=[0, TUBELETS])
    with pytest.raises(ConfigError):
        Rollout(model).contiguous(_latent(), grid=GRID, fps=4.0, steps=0)
    with pytest.raises(ConfigError):
        Rollout(model).gap(_latent(), grid=GRID, fps=4.0, gaps=[-1])
