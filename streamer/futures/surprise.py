"""How wrong an earlier future was, and whether that is unusual for this stream.

Distances are mean absolute differences after the affine-free layer norm in which predictions live.
Which prediction belongs to which tubelet is integer arithmetic on the sampling grid.
"""

# P tokens per tubelet  D width

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from torch import Tensor
from torch.nn.functional import layer_norm

from streamer.futures.config import SurpriseConfig

__all__ = ["Match", "Score", "distance", "match_horizon", "score"]

_EPS = 1e-5
_MAD_TO_STD = 1.4826
"""Of a normal distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One earlier horizon that this clip can judge."""

    row: int
    """Which horizon of the prior."""
    tubelets_ago: int
    """Which tubelet of the clip it foretold, counted back from the newest, from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A surprise against the running baseline of its stream."""

    value: float
    z: float | None
    """None while the baseline fills."""
    baseline: float | None
    """Running median of the values before this one; None before the first."""


def distance(one_PD: Tensor, other_PD: Tensor) -> Tensor:
    """Mean absolute difference of two sets of tokens, each layer-normed -> `float32 []`."""
    return (_normed(one_PD) - _normed(other_PD)).abs().mean()


def _normed(tokens_PD: Tensor) -> Tensor:
    return layer_norm(tokens_PD.float(), tokens_PD.shape[-1:], eps=_EPS)


def match_horizon(
    horizons_s: Sequence[float], *, shift_ticks: int, fps: float, tubelet: int, tubelets: int
) -> Match | None:
    """The furthest earlier horizon that has come true inside this clip.

    Args:
        horizons_s: of the prior, ascending.
        shift_ticks: sampling ticks from the prior's newest frame to this clip's.
        tubelets: of this clip.

    Returns:
        None when none has, or when the clips' tubelets do not lie on the same grid.
    """
    if shift_ticks <= 0 or shift_ticks % tubelet:
        return None
    shift = shift_ticks // tubelet
    for row, horizon_s in reversed(list(enumerate(horizons_s))):
        ago = shift - round(horizon_s * fps / tubelet)
        if 0 <= ago < tubelets:
            return Match(row=row, tubelets_ago=ago)
    return None


def score(history: Sequence[float], *, value: float, config: SurpriseConfig) -> Score:
    """Judge a value against the ones before it.

    The z-score is robust: distance from the median over the median distance from it, scaled to a
    normal deviation.

    Args:
        history: of `SurpriseState`, newest last.
        value: of `distance`.
    """
    past = history[-config.history :]
    baseline = median(past) if past else None
    z = None
    if baseline is not None and len(past) >= config.min_samples:
        z = (value - baseline) / _spread(past, baseline, config)
    return Score(value=value, z=z, baseline=baseline)


def _spread(past: Sequence[float], centre: float, config: SurpriseConfig) -> float:
    mad = median(abs(each - centre) for each in past)
    return max(_MAD_TO_STD * mad, config.min_spread * abs(centre), 1e-9)
