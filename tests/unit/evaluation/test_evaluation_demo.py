"""The evaluation of foresight: what it says of a model without any."""

from __future__ import annotations

import pytest

from streamer.errors import ConfigError
from streamer.evaluation.demo import DemoEvaluation, DemoReport
from streamer.models.config import VJepa2Config
from streamer.models.initialise import initialise
from streamer.models.vjepa2 import VJepa2

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def model() -> VJepa2:
    sizes = VJepa2Config(
        model_type="streamer_vjepa2",
        crop_size=32,
        frames_per_clip=16,
        hidden_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        pred_hidden_size=24,
        pred_num_hidden_layers=1,
        pred_num_attention_heads=2,
        mask_index=0,
        rope="interleaved",
        feeds_back_normed=True,
        trained=False,
    )
    fresh = VJepa2(sizes)
    initialise(fresh, seed=1, std=None)
    return fresh.eval()


@pytest.fixture(scope="module")
def report(model: VJepa2) -> DemoReport:
    return DemoEvaluation(model, seed=7, fit=40, test=40, mishaps=4).run()


def test_every_figure_has_every_horizon_or_kind(report: DemoReport) -> None:
    figures = report.as_json()
    kinds = {"teleport", "vanish", "recolour", "reverse", "freeze", "mean"}
    assert set(figures.pop("surprise_auroc")) == kinds
    assert all(set(each) == {"0.5", "1.0", "2.0"} for each in figures.values())


def test_a_random_predictor_has_no_skill(report: DemoReport) -> None:
    assert max(report.skill_all.values()) < 0
    assert max(report.position_r2.values()) < min(report.position_r2_observed.values())


def test_the_same_seed_gives_the_same_figures(model: VJepa2, report: DemoReport) -> None:
    again = DemoEvaluation(model, seed=7, fit=40, test=40, mishaps=4).run()
    assert again.as_json() == report.as_json()


def test_seeds_of_trainings_are_not_taken(model: VJepa2) -> None:
    with pytest.raises(ConfigError, match="0 to 999"):
        DemoEvaluation(model, seed=5000)
