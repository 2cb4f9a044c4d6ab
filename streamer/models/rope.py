"""Rotary position embedding over three axes, as tables that all layers and heads share.

Each head's channels are cut into a slice for time, one for rows, one for columns (equal, even
widths) and a rest that is not rotated. Within a slice, pairs of *adjacent* channels rotate.
Released 2.0 weights were trained with frequencies *tiled* over the slice, so that the two members
of a pair turn by different angles; the `interleaved` form gives both the same angle.

The tiled form is neither an isometry nor invariant to shifts: positions must start at 0 as in
training, and a rotated key cannot be moved to another position.
"""

# B batch  H heads  N tokens  d channels per head  a channels per axis  (S, h, w) grid

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from streamer.errors import ConfigError
from streamer.models.config import MIN_HEAD_DIM, RopeForm

__all__ = ["Rope", "Rotation", "axis_rotation", "grid_positions", "rotate"]

_BASE = 10000
_MAX_CACHED = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """Tables for ``y = x * cos + swap_pairs(x) * sin``; the sign of the swap lies in `sin`."""

    cos: Tensor
    """`float32 [N, d]`, or `[B, 1, N, d]` where positions differ per row."""
    sin: Tensor
    """As `cos`."""


class Rope:
    """Builds rotations for one head dimension and keeps those of whole grids.

    Not an `nn.Module`: it has no weights and its tables are never saved.
    """

    def __init__(self, *, head_dim: int, form: RopeForm) -> None:
        if head_dim < MIN_HEAD_DIM:
            raise ConfigError(
                f"{head_dim} channels per head are too few for the rotary embedding; "
                f"it needs at least {MIN_HEAD_DIM}."
            )
        self.head_dim = head_dim
        self.form: RopeForm = form
        self._grids: dict[tuple[tuple[int, int, int], torch.device], Rotation] = {}

    def for_grid(self, grid: tuple[int, int, int], *, device: torch.device) -> Rotation:
        """Tables `[N, d]` for all tokens of a grid (S, h, w), computed once and kept."""
        key = (grid, device)
        found = self._grids.get(key)
        if found is None:
            steps, rows, columns = grid
            with torch.inference_mode(False), torch.no_grad():
                ids = torch.arange(steps * rows * columns, device=device)
                found = self.for_ids(ids, rows=rows, columns=columns)
            if len(self._grids) >= _MAX_CACHED:
                self._grids.pop(next(iter(self._grids)))
            self._grids[key] = found
        return found

    def for_ids(self, ids: Tensor, *, rows: int, columns: int) -> Rotation:
        """Tables for token ids in any order, `int64 [N]` shared by the batch or `[B, N]`."""
        if ids.ndim == 2 and (ids.shape[0] == 1 or ids.stride(0) == 0):
            ids = ids[0]
        return self.for_positions(*grid_positions(ids, rows=rows, columns=columns))

    def for_positions(self, depth: Tensor, height: Tensor, width: Tensor) -> Rotation:
        """Tables for positions `[N]` or `[B, N]`, integer or floating point, one per axis."""
        axis = 2 * (self.head_dim // 3 // 2)
        parts = [
            axis_rotation(positions, width=axis, form=self.form)
            for positions in (depth, height, width)
        ]
        rest = self.head_dim - 3 * axis
        cos = torch.cat([p.cos for p in parts], dim=-1)
        sin = torch.cat([p.sin for p in parts], dim=-1)
        cos = torch.nn.functional.pad(cos, (0, rest), value=1.0)
        sin = torch.nn.functional.pad(sin, (0, rest))
        if cos.ndim == 3:
            cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        return Rotation(cos=cos, sin=sin)


def grid_positions(ids: Tensor, *, rows: int, columns: int) -> tuple[Tensor, Tensor, Tensor]:
    """Token ids (time-major, then rows, then columns) -> positions along time, rows, columns."""
    place = ids % (rows * columns)
    depth = torch.div(ids, rows * columns, rounding_mode="floor")
    return depth, torch.div(place, columns, rounding_mode="floor"), place % columns


def axis_rotation(positions: Tensor, *, width: int, form: RopeForm) -> Rotation:
    """Tables of one axis slice.

    Args:
        positions: integer or floating point `[...]`.
        width: channels of the slice, even.
        form: how the `width / 2` frequencies spread over the channels.

    Returns:
        Tables `float32 [..., width]`.

    Source: vjepa2 src/models/utils/modules.py::rotate_queries_or_keys (c2963a4); identical in
        value to the `tiled` form in fp32; differs in that frequencies are fp32 for any dtype.
    Note: `tiled` is a quirk that released weights rely on; tests/parity hold it.
    """
    exponents = torch.arange(width // 2, dtype=torch.float32, device=positions.device)
    frequencies = 1.0 / _BASE ** (exponents / (width / 2.0))
    angles = positions.unsqueeze(-1) * frequencies
    if form == "tiled":
        angles = torch.cat([angles, angles], dim=-1)
    else:
        angles = angles.repeat_interleave(2, dim=-1)
    sign = torch.ones(width, device=positions.device)
    sign[0::2] = -1.0
    return Rotation(cos=angles.cos(), sin=angles.sin() * sign)


def rotate(x: Tensor, rotation: Rotation) -> Tensor:
    """Rotate queries or keys `[B, H, N, d]`; the result is fp32 when `x` is narrower."""
    return x * rotation.cos + _swap_pairs(x) * rotation.sin


def _swap_pairs(x: Tensor) -> Tensor:
    if x.shape[-1] % 2:  # the last channel of an odd head is never rotated
        return torch.cat([_swap_pairs(x[..., :-1]), x[..., -1:]], dim=-1)
    return x.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)
