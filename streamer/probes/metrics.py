"""How good labels, places and latents are: small functions, each tested against scikit-learn or a
published number."""

# N samples  C classes  D width

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from streamer.errors import ConfigError

__all__ = [
    "ClassMeanRecall",
    "auroc",
    "average_precision",
    "calibration_error",
    "r2",
    "rankme",
    "top_k_accuracy",
]


class ClassMeanRecall:
    """Mean over classes of recall among the `k` best scores, cumulative over batches, in percent.

    Args:
        valid: classes that may be named; the others' scores count as 0.

    Source: vjepa2 evals/action_anticipation_frozen/metrics.py::ClassMeanRecall (c2963a4),
        identical.
    """

    def __init__(self, num_classes: int, *, k: int = 5, valid: Sequence[int] | None = None) -> None:
        self._k = min(k, num_classes)
        self._valid = None if valid is None else torch.tensor(list(valid))
        self.hits_C = torch.zeros(num_classes)
        self.misses_C = torch.zeros(num_classes)

    def update(self, logits_NC: Tensor, labels_N: Tensor) -> None:
        """Take a batch in."""
        scores = logits_NC.sigmoid()
        if self._valid is not None:
            kept = torch.zeros_like(scores)
            kept[:, self._valid] = scores[:, self._valid]
            scores = kept
        best = scores.topk(self._k, dim=1).indices
        is_hit = (best == labels_N[:, None]).any(dim=1)
        ones = torch.ones_like(labels_N, dtype=torch.float32)
        self.hits_C.index_add_(0, labels_N[is_hit], ones[is_hit])
        self.misses_C.index_add_(0, labels_N[~is_hit], ones[~is_hit])

    @property
    def recall(self) -> float:
        """Percent, mean over the classes that came up."""
        seen = self.hits_C + self.misses_C
        each = self.hits_C / (seen + 1e-8)
        return float(100 * each.sum() / (seen > 0).sum())

    @property
    def accuracy(self) -> float:
        """Percent of the samples."""
        return float(100 * self.hits_C.sum() / (self.hits_C.sum() + self.misses_C.sum()))


def top_k_accuracy(scores_NC: Tensor, labels_N: Tensor, *, k: int = 1) -> float:
    """Share of samples whose class is among the `k` best."""
    best = scores_NC.topk(min(k, scores_NC.shape[1]), dim=1).indices
    return float((best == labels_N[:, None]).any(dim=1).float().mean())


def auroc(scores_N: Tensor, is_positive_N: Tensor) -> float:
    """Probability that a positive scores higher than a negative; ties count half.

    Raises:
        ConfigError: only one class.
    """
    positive, negative = _both(scores_N, is_positive_N)
    values, inverse, counts = torch.unique(
        scores_N.double(), return_inverse=True, return_counts=True
    )
    last = counts.cumsum(0).double()
    ranks = (last - (counts.double() - 1) / 2)[inverse]
    del values
    wins = ranks[is_positive_N.bool()].sum() - positive * (positive + 1) / 2
    return float(wins / (positive * negative))


def average_precision(scores_N: Tensor, is_positive_N: Tensor) -> float:
    """Area under precision over recall, by steps at each distinct score.

    Raises:
        ConfigError: only one class.
    """
    positive, _ = _both(scores_N, is_positive_N)
    ordered, order = scores_N.double().sort(descending=True)
    hits = is_positive_N.bool()[order].double().cumsum(0)
    ends = torch.cat([ordered[1:] != ordered[:-1], torch.tensor([True])])
    precision = (hits / torch.arange(1, len(hits) + 1))[ends]
    recall = hits[ends] / positive
    before = torch.cat([torch.zeros(1, dtype=recall.dtype), recall[:-1]])
    return float(((recall - before) * precision).sum())


def calibration_error(probabilities_N: Tensor, is_positive_N: Tensor, *, bins: int = 10) -> float:
    """Mean difference between what was said and what came true, over equally wide bins."""
    place = (probabilities_N * bins).long().clamp(0, bins - 1)
    total = 0.0
    for i in range(bins):
        inside = place == i
        if inside.any():
            said = probabilities_N[inside].double().mean()
            came = is_positive_N[inside].double().mean()
            total += float(inside.double().mean() * (said - came).abs())
    return total


def r2(predicted_ND: Tensor, actual_ND: Tensor) -> float:
    """Coefficient of determination, mean over the columns."""
    predicted, actual = predicted_ND.double(), actual_ND.double()
    residual = (predicted - actual).square().sum(dim=0)
    spread = (actual - actual.mean(dim=0)).square().sum(dim=0)
    return float((1 - residual / spread).mean())


def rankme(features_ND: Tensor, *, eps: float = 1e-7) -> float:
    """Effective rank of features, between 1 and D: exp of the entropy of the singular values.

    Args:
        features_ND: centre them first, or the mean counts as a direction of its own.

    Source: RankMe (Garrido et al. 2023, arXiv 2210.02885), equation 1.
    """
    values = torch.linalg.svdvals(features_ND.double())
    shares = values / values.sum() + eps
    return float(torch.exp(-(shares * shares.log()).sum()))


def _both(scores_N: Tensor, is_positive_N: Tensor) -> tuple[int, int]:
    positive = int(is_positive_N.bool().sum())
    negative = len(scores_N) - positive
    if positive == 0 or negative == 0:
        raise ConfigError("All samples are of one class; a ranking needs examples of both.")
    return positive, negative
