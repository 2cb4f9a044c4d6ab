"""EK100 labels, clips, class-mean recall and focal loss, number for number."""

from __future__ import annotations

import pytest
import torch

from streamer.probes.ek100 import Ek100Labels, clip_indices
from streamer.probes.focal import sigmoid_focal_loss
from streamer.probes.metrics import ClassMeanRecall

pytestmark = pytest.mark.parity


def test_action_logits_stand_for_upstreams_pairs(published) -> None:
    file = published("ek100_labels")
    rows = [(int(verb), int(noun)) for verb, noun in file.given["train_verb_noun"].tolist()]
    labels = Ek100Labels.of_training_rows(rows)
    assert [list(pair) for pair in labels.actions] == file.expected["action_pairs"].tolist()
    assert list(labels.verbs) == file.expected["verb_ids"].tolist()
    assert list(labels.nouns) == file.expected["noun_ids"].tolist()


def test_clips_hold_upstreams_frames(published) -> None:
    file = published("ek100_clip_indices")
    columns = file.config["columns"]
    for row, expected in zip(
        file.given["rows"].tolist(), file.expected["indices"].tolist(), strict=True
    ):
        given = dict(zip(columns, row, strict=True))
        found = clip_indices(
            start_frame=given["start_frame"],
            stop_frame=given["stop_frame"],
            video_fps=given["video_fps"],
            fps=given["fps"],
            frames=int(given["frames_per_clip"]),
            anticipation_s=given["anticipation_seconds"],
            point=given["anticipation_point"],
        )
        assert len(found) == given["returned_length"]
        shown = found[: len(expected)]
        assert shown + [-1] * (len(expected) - len(shown)) == expected


@pytest.mark.parametrize("suffix", ["", "_valid"])
def test_class_mean_recall(published, suffix: str) -> None:
    file = published("anticipation_metrics")
    config = file.config
    valid = config["valid_classes"] if suffix else None
    metric = ClassMeanRecall(config["num_classes"], k=config["k"], valid=valid)
    for i in range(config["batches"]):
        metric.update(file.given[f"b{i}.logits"], file.given[f"b{i}.labels"])
        assert metric.recall == pytest.approx(
            file.expected[f"b{i}.recall{suffix}"].item(), abs=1e-4
        )
        assert metric.accuracy == pytest.approx(
            file.expected[f"b{i}.accuracy{suffix}"].item(), abs=1e-4
        )
    if not suffix:
        assert torch.equal(metric.hits_C, file.expected["tp"])
        assert torch.equal(metric.misses_C, file.expected["fn"])


def test_focal_loss(published) -> None:
    file = published("anticipation_metrics")
    for i in range(file.config["batches"]):
        logits = file.given[f"b{i}.logits"]
        targets = torch.nn.functional.one_hot(file.given[f"b{i}.labels"], logits.shape[1])
        for name, options in {
            "focal_sum": {},
            "focal_mean": {"reduction": "mean"},
            "focal_alpha_neg": {"alpha": -1.0, "gamma": 1.5},
        }.items():
            found = sigmoid_focal_loss(logits, targets, **options)
            torch.testing.assert_close(found, file.expected[f"b{i}.{name}"], atol=1e-5, rtol=1e-5)
