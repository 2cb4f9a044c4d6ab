"""Against transformers itself, with random weights shared through a saved folder."""

from __future__ import annotations

import pytest
import torch

from streamer.models.vjepa2 import VJepa2

pytestmark = pytest.mark.parity

SIZES = {
    "patch_size": 8,
    "crop_size": 24,
    "frames_per_clip": 8,
    "hidden_size": 64,
    "num_attention_heads": 2,
    "num_hidden_layers": 3,
    "mlp_ratio": 48 / 11,
    "pred_hidden_size": 48,
    "pred_num_attention_heads": 4,
    "pred_num_hidden_layers": 2,
    "pred_num_mask_tokens": 4,
    "num_pooler_layers": 2,
    "num_labels": 5,
}


def _randomise(model: torch.nn.Module) -> None:
    """Nothing at its initial 0 or 1, attention peaked: an exchanged tensor must show."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, p in model.named_parameters():
            scale = 1.0 if "mask_tokens" in name or "query_tokens" in name else 0.2
            p.copy_(torch.randn(p.shape, generator=generator) * scale)
            if "norm" in name and name.endswith("weight"):
                p.add_(1.0)


@pytest.fixture(scope="module", params=["VJEPA2Model", "VJEPA2ForVideoClassification"])
def pair(request, tmp_path_factory):
    import transformers  # here: it takes seconds, and who runs other tests needs none of it

    config = transformers.VJEPA2Config(**SIZES, attn_implementation="sdpa")
    theirs = getattr(transformers, request.param)(config).eval()
    _randomise(theirs)
    folder = tmp_path_factory.mktemp("folder")
    theirs.save_pretrained(folder)
    return theirs, VJepa2.from_pretrained(folder)


@pytest.fixture(scope="module")
def pixels() -> torch.Tensor:
    return torch.randn(2, 3, 8, 24, 24, generator=torch.Generator().manual_seed(8))


def _backbone(theirs):
    return getattr(theirs, "vjepa2", theirs)


@torch.inference_mode()
def test_encoder_and_predictor(pair, pixels) -> None:
    theirs, ours = pair
    generator = torch.Generator().manual_seed(9)
    orders = torch.stack([torch.randperm(36, generator=generator) for _ in range(2)])
    context, target = orders[:, :20], orders[:, 20:]
    expected = _backbone(theirs)(
        pixels.transpose(1, 2), context_mask=[context], target_mask=[target]
    )
    tokens = ours.encoder(pixels)
    torch.testing.assert_close(tokens, expected.last_hidden_state, atol=3e-5, rtol=1e-4)
    kept = tokens.gather(1, context.unsqueeze(-1).expand(-1, -1, tokens.shape[-1]))
    torch.testing.assert_close(
        ours.predictor(kept, context, target),
        expected.predictor_output.last_hidden_state,
        atol=3e-5,
        rtol=1e-4,
    )


@torch.inference_mode()
def test_positions_beyond_the_clip(pair, pixels) -> None:
    theirs, ours = pair
    tokens = ours.encoder(pixels)
    context = torch.arange(36).expand(2, -1)
    target = torch.stack([torch.arange(9) + 36, torch.arange(9) + 90])
    expected = _backbone(theirs).predictor(tokens, [context], [target]).last_hidden_state
    found = ours.predictor(tokens, context, target)
    torch.testing.assert_close(found, expected, atol=3e-5, rtol=1e-4)


@torch.inference_mode()
def test_logits(pair, pixels) -> None:
    theirs, ours = pair
    if ours.classifier is None:
        assert not hasattr(theirs, "classifier")
        return
    expected = theirs(pixels.transpose(1, 2)).logits
    found = ours.classifier(ours.encoder(pixels))
    torch.testing.assert_close(found, expected, atol=3e-5, rtol=1e-4)


@torch.inference_mode()
def test_transformers_reads_what_we_save(pair, pixels, tmp_path) -> None:
    theirs, ours = pair
    ours.save_pretrained(tmp_path)
    again = type(theirs).from_pretrained(tmp_path)
    found, expected = again.state_dict(), theirs.state_dict()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[key], expected[key]) for key in expected)


def test_video_processor_reads_our_numbers(pair, tmp_path) -> None:
    from transformers.models.vjepa2.video_processing_vjepa2 import VJEPA2VideoProcessor

    _, ours = pair
    ours.save_pretrained(tmp_path)
    size = {"shortest_edge": int(24 * 256 / 224)}
    processor = VJEPA2VideoProcessor.from_pretrained(tmp_path)
    assert dict(processor.size) == size
    assert processor.crop_size["height"] == 24
