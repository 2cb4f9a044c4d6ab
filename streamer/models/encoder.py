"""The V-JEPA 2 encoder: a plain vision transformer over tubelets."""

# B batch  C channels  T frames  N tokens  K kept tokens  M masks  D width

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import torch
from torch import Tensor, nn

from streamer.errors import ShapeMismatch
from streamer.models.blocks import Block, GeluMlp, SwiGluMlp, swiglu_width
from streamer.models.config import VJepa2Config
from streamer.models.patch import TubeletEmbedding
from streamer.models.rope import Rope, Rotation

__all__ = ["Encoder", "check_ids", "make_mlp"]


class Encoder(nn.Module):
    """Clips to tokens.

    Source: vjepa2 src/models/vision_transformer.py::VisionTransformer (c2963a4), identical in fp32.
    """

    def __init__(self, config: VJepa2Config) -> None:
        super().__init__()
        width, heads = config.hidden_size, config.num_attention_heads
        self.patch_embed = TubeletEmbedding(
            channels=config.in_chans,
            width=width,
            patch=config.patch_size,
            tubelet=config.tubelet_size,
        )
        self.blocks = nn.ModuleList(
            Block(
                width,
                heads=heads,
                mlp=make_mlp(
                    width, config.mlp_ratio, use_silu=config.use_silu, wide=config.wide_silu
                ),
                eps=config.layer_norm_eps,
                qkv_bias=config.qkv_bias,
            )
            for _ in range(config.num_hidden_layers)
        )
        self.norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.rope = Rope(head_dim=width // heads, form=config.rope)

    @overload
    def forward(
        self,
        pixels: Tensor,
        masks: Tensor | Sequence[Tensor] | None = None,
        out_layers: None = None,
    ) -> Tensor: ...
    @overload
    def forward(
        self,
        pixels: Tensor,
        masks: Tensor | Sequence[Tensor] | None = None,
        *,
        out_layers: Sequence[int],
    ) -> list[Tensor]: ...
    def forward(
        self,
        pixels: Tensor,
        masks: Tensor | Sequence[Tensor] | None = None,
        out_layers: Sequence[int] | None = None,
    ) -> Tensor | list[Tensor]:
        """Encode clips of any length and any size that is a multiple of the patch.

        Args:
            pixels: normalised, `float [B, 3, T, H, W]`, or one picture each `[B, 3, H, W]`.
            masks: ids of the tokens to keep, `int64 [B, K]` in any order, which is also the order
                of the output; a list gives all its masks, mask-major along the batch.
            out_layers: block numbers from 0; gives a list with the final norm applied to the
                output of each, in the order of the blocks, and nothing else.

        Returns:
            `[B, N, D]`, `[B, K, D]` or `[M*B, K, D]`, raw (after the affine final norm).

        Raises:
            ShapeMismatch: pixels or masks of another form.
            ValueError: an id or a block number that does not exist.
        """
        x, grid = self.patch_embed(pixels)
        if masks is None:
            rotation = self.rope.for_grid(grid, device=x.device)
        else:
            x, rotation = self._keep(x, [masks] if isinstance(masks, Tensor) else masks, grid)
        if out_layers is None:
            for block in self.blocks:
                x = block(x, rotation)
            return self.norm(x)
        return self._layers(x, rotation, set(out_layers))

    def _keep(
        self, x: Tensor, masks: Sequence[Tensor], grid: tuple[int, int, int]
    ) -> tuple[Tensor, Rotation]:
        if not masks:
            raise ShapeMismatch("A list of masks must hold at least one.")
        for ids in masks:
            check_ids(ids, batch=x.shape[0], what="masks", below=x.shape[1])
        if len({ids.shape[1] for ids in masks}) != 1:
            raise ShapeMismatch("Masks of one call must keep the same number of tokens each.")
        kept = [x.gather(1, ids.unsqueeze(-1).expand(-1, -1, x.shape[-1])) for ids in masks]
        ids = torch.cat(list(masks), dim=0)
        return torch.cat(kept, dim=0), self.rope.for_ids(ids, rows=grid[1], columns=grid[2])

    def _layers(self, x: Tensor, rotation: Rotation, wanted: set[int]) -> list[Tensor]:
        if not wanted or not wanted <= set(range(len(self.blocks))):
            raise ValueError(f"out_layers must lie in 0..{len(self.blocks) - 1}, found {wanted}")
        outputs = []
        for i, block in enumerate(self.blocks[: max(wanted) + 1]):
            x = block(x, rotation)
            if i in wanted:
                outputs.append(self.norm(x))
        return outputs


def make_mlp(width: int, ratio: float, *, use_silu: bool, wide: bool) -> nn.Module:
    """The MLP of a block, `int(width * ratio)` channels inside."""
    hidden = int(width * ratio)
    if use_silu:
        return SwiGluMlp(width, hidden=swiglu_width(hidden, wide=wide))
    return GeluMlp(width, hidden=hidden)


def check_ids(ids: Tensor, *, batch: int, what: str, below: int | None = None) -> None:
    """Token ids must be `int64 [B, K]` with K >= 1 and values in 0..below-1.

    Values are looked at on the CPU only: elsewhere that would wait for the device.
    """
    if ids.ndim != 2 or ids.shape[0] != batch or ids.shape[1] < 1 or ids.dtype != torch.int64:
        raise ShapeMismatch(
            f"{what} must be int64 [{batch}, K] with K >= 1; "
            f"found {str(ids.dtype).removeprefix('torch.')} {list(ids.shape)}."
        )
    if ids.device.type == "cpu" and (
        int(ids.min()) < 0 or (below is not None and int(ids.max()) >= below)
    ):
        raise ValueError(f"{what} holds ids outside 0..{below - 1 if below else ''}")
