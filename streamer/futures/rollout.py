"""Masked-predictor rollout: from a latent to futures.

Two modes, which are different models of the same future:

- `contiguous`: the newest tubelets of the latent, renumbered from 0, predict the next one; it joins
  the context, the oldest leaves, and so on. With the default context the target always stands on
  the last trained position.
- `gap`: all of the latent predicts one tubelet some way ahead, in a single call.

Predictions are fed back as they come, next to raw encoder tokens, although they live in the
layer-normed space: that is how the released wrapper does it. A model whose config says
`feeds_back_normed` was trained otherwise: its predictions are layer-normed first.
"""

# B batch  N tokens  S tubelets (steps)  P tokens per tubelet (h*w)  D width

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import layer_norm

from streamer.errors import ConfigError, HorizonUnreachable, ShapeMismatch
from streamer.futures.config import RolloutConfig, context_tubelets, horizon_of
from streamer.futures.window import TokenWindow, newest, token_ids
from streamer.models.rope import Rotation
from streamer.models.vjepa2 import VJepa2
from streamer.records import Future

__all__ = ["Rollout"]

_MAX_CACHED = 32
_EPS = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Positions:
    context_ids: Tensor
    target_ids: Tensor
    rotation: Rotation


class Rollout:
    """The predictor of one model, with its position tables. Not thread-safe.

    Args:
        model: on its device, in eval mode.
    """

    def __init__(self, model: VJepa2, *, config: RolloutConfig | None = None) -> None:
        self._config = config or RolloutConfig()
        self._predictor = model.predictor
        self._side = model.config.grid_size
        self._tubelet = model.config.tubelet_size
        self._trained = model.config.trained_tubelets
        self._width = model.config.hidden_size
        self._feeds_back_normed = model.config.feeds_back_normed
        weight = next(self._predictor.parameters())
        self.device = weight.device
        self._weight_dtype = weight.dtype
        self._positions: OrderedDict[tuple[int, int, int], _Positions] = OrderedDict()

    def contiguous(
        self, tokens: Tensor, *, grid: tuple[int, int, int], fps: float, steps: int
    ) -> Iterator[Future]:
        """Step into the future one tubelet at a time.

        Args:
            tokens: raw latent `[N, D]`, or `[B, N, D]`, on the model's device.
            grid: (S, h, w) of the latent.
            fps: of the clip.
            steps: how many, 1 to the number of tubelets of context.

        Yields:
            Step 1, 2, ... as soon as it is made; `tokens` `[P, D]` or `[B, P, D]` in the dtype of
            the input.

        Raises:
            ShapeMismatch: tokens and grid do not fit each other or the model.
            HorizonUnreachable: more steps than context.
            ConfigError: less than one step.
        """
        tokens_BND = self._checked(tokens, grid)
        context = context_tubelets(
            grid[0], trained=self._trained, wanted=self._config.context_tubelets
        )
        self._check_steps(steps, reach=context, fps=fps)
        return self._slide(tokens_BND, context, fps, steps, is_single=tokens.ndim == 2)

    def gap(
        self, tokens: Tensor, *, grid: tuple[int, int, int], fps: float, gaps: Sequence[int]
    ) -> Iterator[Future]:
        """Predict single tubelets, each from the latent alone.

        Args:
            tokens: as for `contiguous`.
            gaps: tubelets left out between the latent and the predicted one, each 0 or more and
                below the number of tubelets of the latent.

        Yields:
            Per gap s the future of step s + 1, in the order given.

        Raises: as `contiguous`.

        Source: vjepa2 evals/action_anticipation_frozen/modelcustom/
            vit_encoder_predictor_concat_ar.py::AnticipativeWrapper.forward (c2963a4), identical
            for one step of one tubelet; differs in that horizons are given as gaps.
        """
        tokens_BND = self._checked(tokens, grid)
        for gap in gaps:
            self._check_steps(gap + 1, reach=grid[0], fps=fps)
        return self._leap(tokens_BND, tuple(gaps), fps, is_single=tokens.ndim == 2)

    def _slide(
        self, tokens_BND: Tensor, context: int, fps: float, steps: int, *, is_single: bool
    ) -> Iterator[Future]:
        places = self._side**2
        furthest = max(context, tokens_BND.shape[1] // places - 1)  # the encoder's counts, too
        kept = newest(tokens_BND, tubelets=context, places=places)
        window = TokenWindow(kept, room=steps * places)
        for step in range(1, steps + 1):
            predicted = self._predict(window.tokens, gap=0)
            if self._feeds_back_normed:
                predicted = layer_norm(predicted, predicted.shape[-1:], eps=_EPS)
            predicted = window.append(predicted)
            yield self._future(predicted, step, fps, last_position=furthest, is_single=is_single)

    def _leap(
        self, tokens_BND: Tensor, gaps: tuple[int, ...], fps: float, *, is_single: bool
    ) -> Iterator[Future]:
        seen = tokens_BND.shape[1] // self._side**2
        for gap in gaps:
            predicted = self._predict(tokens_BND, gap=gap).to(tokens_BND.dtype)
            yield self._future(
                predicted, gap + 1, fps, last_position=seen + gap, is_single=is_single
            )

    def _future(
        self, tokens: Tensor, step: int, fps: float, *, last_position: int, is_single: bool
    ) -> Future:
        return Future(
            step=step,
            horizon_s=horizon_of(step, fps=fps, tubelet=self._tubelet),
            tokens=tokens[0] if is_single else tokens,
            is_extrapolated=last_position >= self._trained,
        )

    @torch.inference_mode()
    def _predict(self, context_BND: Tensor, *, gap: int) -> Tensor:
        batch, count, _ = context_BND.shape
        positions = self._positions_for(count, gap=gap, batch=batch)
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self._uses_autocast):
            return self._predictor(
                context_BND.to(self._weight_dtype),
                positions.context_ids,
                positions.target_ids,
                mask_index=self._config.mask_index,
                rotation=positions.rotation,
            )

    @property
    def _uses_autocast(self) -> bool:
        return self._config.dtype == "bfloat16" and self._weight_dtype is not torch.bfloat16

    def _positions_for(self, count: int, *, gap: int, batch: int) -> _Positions:
        key = (count, gap, batch)
        if key not in self._positions:
            if len(self._positions) >= _MAX_CACHED:
                self._positions.popitem(last=False)
            self._positions[key] = self._make_positions(count, gap=gap, batch=batch)
        self._positions.move_to_end(key)
        return self._positions[key]

    def _make_positions(self, count: int, *, gap: int, batch: int) -> _Positions:
        places = self._side**2
        context = token_ids(0, count, batch=batch, device=self.device)
        target = token_ids(count + gap * places, places, batch=batch, device=self.device)
        rotation = self._predictor.rotation(context, target)
        return _Positions(context_ids=context, target_ids=target, rotation=rotation)

    def _checked(self, tokens: Tensor, grid: tuple[int, int, int]) -> Tensor:
        steps, rows, columns = grid
        count = steps * rows * columns
        tokens_BND = tokens.unsqueeze(0) if tokens.ndim == 2 else tokens
        if (
            (rows, columns) == (self._side, self._side)
            and steps >= 1
            and tokens_BND.ndim == 3
            and tokens_BND.shape[1:] == (count, self._width)
        ):
            return tokens_BND
        raise ShapeMismatch(
            f"A latent must be [N, {self._width}] or [B, N, {self._width}] on a grid (S, "
            f"{self._side}, {self._side}) with N = S*h*w; found {list(tokens.shape)} on {grid}."
        )

    def _check_steps(self, steps: int, *, reach: int, fps: float) -> None:
        if steps < 1:
            raise ConfigError(f"Step {steps} was asked for; steps count from 1.")
        if steps > reach:
            largest_s = horizon_of(reach, fps=fps, tubelet=self._tubelet)
            raise HorizonUnreachable(
                f"Step {steps} is out of reach; nothing observed is left after step {reach}, "
                f"{largest_s:g} s ahead.",
                largest_s,
            )
