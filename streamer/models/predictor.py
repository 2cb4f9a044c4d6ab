"""The masked predictor: from tokens of a context to tokens at any other position.

Predictions live in the space of *layer-normed* encoder output (no affine, eps 1e-5): that is what
training compared them with. They are returned as they are.
"""

# B batch  N context tokens  M target tokens  D encoder width  P predictor width

from __future__ import annotations

import torch
from torch import Tensor, nn

from streamer.errors import ShapeMismatch
from streamer.models.blocks import Block
from streamer.models.config import VJepa2Config
from streamer.models.encoder import check_ids, make_mlp
from streamer.models.rope import Rope, Rotation

__all__ = ["Predictor"]


class Predictor(nn.Module):
    """Context tokens and their ids, target ids -> predicted tokens.

    Source: vjepa2 src/models/predictor.py::VisionTransformerPredictor (c2963a4), identical in
        fp32; differs in that tokens are not sorted (attention does not care) and that target ids
        have no upper limit (mask tokens are made for the ids asked for, not gathered from a table).
    """

    def __init__(self, config: VJepa2Config) -> None:
        super().__init__()
        width, heads = config.pred_hidden_size, config.pred_num_attention_heads
        self.predictor_embed = nn.Linear(config.hidden_size, width)
        self.mask_tokens = nn.ParameterList(
            nn.Parameter(torch.zeros(1, 1, width)) for _ in range(config.pred_num_mask_tokens)
        )
        self.predictor_blocks = nn.ModuleList(
            Block(
                width,
                heads=heads,
                mlp=make_mlp(
                    width,
                    config.pred_mlp_ratio,
                    use_silu=config.pred_use_silu,
                    wide=config.wide_silu,
                ),
                eps=config.layer_norm_eps,
                qkv_bias=config.qkv_bias,
            )
            for _ in range(config.pred_num_hidden_layers)
        )
        self.predictor_norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.predictor_proj = nn.Linear(width, config.hidden_size)
        self.rope = Rope(head_dim=width // heads, form=config.rope)
        self.grid_size = config.grid_size
        self.mask_index = config.mask_index

    def rotation(self, context_ids_BN: Tensor, target_ids_BM: Tensor) -> Rotation:
        """Rotary tables for a pair of id tensors, to be reused where ids do not change."""
        ids = torch.cat([context_ids_BN, target_ids_BM], dim=1)
        if context_ids_BN.stride(0) == 0 and target_ids_BM.stride(0) == 0:
            ids = ids[:1]
        return self.rope.for_ids(ids, rows=self.grid_size, columns=self.grid_size)

    def forward(
        self,
        context_BND: Tensor,
        context_ids_BN: Tensor,
        target_ids_BM: Tensor,
        *,
        mask_index: int | None = None,
        rotation: Rotation | None = None,
        return_all_tokens: bool = False,
    ) -> Tensor:
        """Predict tokens.

        Args:
            context_BND: encoder output at `context_ids`, `float [B, N, D]`.
            context_ids_BN: `int64 [B, N]`, any order. Rows may differ.
            target_ids_BM: `int64 [B, M]`, any order, any position (also beyond the clip, also
                those of the context).
            mask_index: which mask token, modulo their number; None is the checkpoint's own.
            rotation: from `rotation()` for these ids, to save making it again.
            return_all_tokens: give context and target tokens, by ascending id, instead.

        Returns:
            `[B, M, D]` in the order of the target ids; with `return_all_tokens` `[B, N + M, D]`.

        Raises:
            ShapeMismatch: tokens and ids do not belong together.
            ValueError: a negative id.
        """
        self._check(context_BND, context_ids_BN, target_ids_BM)
        if rotation is None:
            rotation = self.rotation(context_ids_BN, target_ids_BM)
        x = self._tokens(context_BND, target_ids_BM.shape[1], mask_index)
        for block in self.predictor_blocks:
            x = block(x, rotation)
        if return_all_tokens:
            order = torch.cat([context_ids_BN, target_ids_BM], dim=1).argsort(dim=1, stable=True)
            x = x.gather(1, order.unsqueeze(-1).expand(-1, -1, x.shape[-1]))
        else:
            x = x[:, context_BND.shape[1] :]
        return self.predictor_proj(self.predictor_norm(x))

    def _tokens(self, context_BND: Tensor, targets: int, mask_index: int | None) -> Tensor:
        index = self.mask_index if mask_index is None else mask_index
        token = self.mask_tokens[index % len(self.mask_tokens)]
        context = self.predictor_embed(context_BND)
        masked = token.to(context.dtype).expand(context.shape[0], targets, -1)
        return torch.cat([context, masked], dim=1)

    def _check(self, context_BND: Tensor, context_ids_BN: Tensor, target_ids_BM: Tensor) -> None:
        width = self.predictor_embed.in_features
        if context_BND.ndim != 3 or context_BND.shape[2] != width:
            raise ShapeMismatch(
                f"Context must be [B, N, {width}]; found {list(context_BND.shape)}."
            )
        batch, count, _ = context_BND.shape
        check_ids(context_ids_BN, batch=batch, what="context_ids")
        check_ids(target_ids_BM, batch=batch, what="target_ids")
        if context_ids_BN.shape[1] != count:
            raise ShapeMismatch(
                f"{count} context tokens came with {context_ids_BN.shape[1]} context ids."
            )
