"""Lines of a training, and recipes."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from streamer.errors import CheckpointError, ConfigError
from streamer.training.journal import opened_journal, read_journal
from streamer.training.pretrain import Progress
from streamer.training.recipe import read_recipe

pytestmark = pytest.mark.unit


def _progress(step: int) -> Progress:
    return Progress(
        step=step,
        loss=1 / step,
        lr=1e-3,
        weight_decay=0.04,
        momentum=0.99,
        grad_norm=1.0,
        token_std=0.8,
    )


def test_a_resumed_training_writes_no_step_twice(tmp_path: Path) -> None:
    with opened_journal(tmp_path, step=0) as journal:
        for step in (10, 20, 30):
            journal.add(_progress(step))
    with opened_journal(tmp_path, step=20) as journal:
        journal.add(_progress(30))
    assert read_journal(tmp_path) == [_progress(step) for step in (10, 20, 30)]
    with (tmp_path / "progress.csv").open(encoding="utf-8") as file:
        assert [int(row["step"]) for row in csv.DictReader(file)] == [10, 20, 30]


def test_a_line_cut_short_by_a_kill_is_left_out(tmp_path: Path) -> None:
    with opened_journal(tmp_path, step=0) as journal:
        journal.add(_progress(10))
    with (tmp_path / "progress.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"step": 20, "lo')
    assert read_journal(tmp_path) == [_progress(10)]


def test_a_strange_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "progress.jsonl").write_text('nothing\n{"step": 1}\n', encoding="utf-8")
    with pytest.raises(CheckpointError, match="Line 1"):
        read_journal(tmp_path)


def test_the_recipe_of_the_demo_is_read() -> None:
    recipe = read_recipe(Path("docs/recipes/demo.yaml"), options={"steps": 7, "warmup": 0})
    assert (recipe.model.hidden_size, recipe.training.steps) == (128, 7)
    assert recipe.training.optimiser.betas == (0.9, 0.95)
    assert recipe.training.tasks.tubes[0].num_blocks == 8


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("trainings: {}", "section 'trainings'"),
        ("training: {stepps: 3}", "steps"),
        ("training: {steps: many}", "training.steps"),
        ("training: {steps: 0}", "steps is 0"),
        ("training: {tasks: {tubes: [1]}}", "list of sections"),
        ("model: {hiden_size: 3}", "hidden_size"),
    ],
)
def test_a_recipe_that_cannot_work_is_explained(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=said):
        read_recipe(path)
