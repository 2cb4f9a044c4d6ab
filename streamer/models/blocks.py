"""Pre-norm transformer blocks and their two kinds of MLP."""

# B batch  N tokens  Q queries  D width

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import gelu, silu

from streamer.models.attention import CrossAttention, SelfAttention
from streamer.models.rope import Rotation

__all__ = ["Block", "CrossBlock", "GeluMlp", "SwiGluMlp", "swiglu_width"]


class GeluMlp(nn.Module):
    """``fc2(gelu(fc1(x)))`` with the exact (erf) GELU."""

    def __init__(self, width: int, *, hidden: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, hidden)
        self.fc2 = nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(gelu(self.fc1(x)))


class SwiGluMlp(nn.Module):
    """``fc3(silu(fc1(x)) * fc2(x))``, biases everywhere.

    Source: vjepa2 src/models/utils/modules.py::SwiGLUFFN (c2963a4), identical.
    """

    def __init__(self, width: int, *, hidden: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, hidden)
        self.fc2 = nn.Linear(width, hidden)
        self.fc3 = nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc3(silu(self.fc1(x)) * self.fc2(x))


def swiglu_width(hidden: int, *, wide: bool) -> int:
    """Inner width of a SwiGLU MLP in place of a plain one with `hidden` channels."""
    return -(-int(2 * hidden / 3) // 8) * 8 if wide else hidden


class Block(nn.Module):
    """``x += attn(norm1(x)); x += mlp(norm2(x))``.

    Source: vjepa2 src/models/utils/modules.py::Block (c2963a4), identical; drop-path and dropout
        are left out, since released settings have neither.
    """

    def __init__(
        self,
        width: int,
        *,
        heads: int,
        mlp: nn.Module,
        eps: float,
        qkv_bias: bool = True,
    ) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=eps)
        self.attn = SelfAttention(width, heads=heads, qkv_bias=qkv_bias)
        self.norm2 = nn.LayerNorm(width, eps=eps)
        self.mlp = mlp

    def forward(self, x_BND: Tensor, rotation: Rotation | None = None) -> Tensor:
        """`[B, N, D]` -> `[B, N, D]`."""
        x_BND = x_BND + self.attn(self.norm1(x_BND), rotation)
        return x_BND + self.mlp(self.norm2(x_BND))


class CrossBlock(nn.Module):
    """Queries attend to normed tokens; the queries themselves are not normed before that.

    Source: vjepa2 src/models/utils/modules.py::CrossAttentionBlock (c2963a4), identical.
    """

    def __init__(self, width: int, *, heads: int, hidden: int, eps: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=eps)
        self.xattn = CrossAttention(width, heads=heads)
        self.norm2 = nn.LayerNorm(width, eps=eps)
        self.mlp = GeluMlp(width, hidden=hidden)

    def forward(self, queries_BQD: Tensor, tokens_BND: Tensor) -> Tensor:
        """`[B, Q, D]`, `[B, N, D]` -> `[B, Q, D]`."""
        queries_BQD = queries_BQD + self.xattn(queries_BQD, self.norm1(tokens_BND))
        return queries_BQD + self.mlp(self.norm2(queries_BQD))
