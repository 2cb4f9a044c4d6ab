"""Self-attention with a fused projection, and the pooler's cross-attention.

Only `scaled_dot_product_attention`: no score matrix is ever held.
"""

# B batch  H heads  N tokens  Q queries  D width  d channels per head

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from streamer.models.rope import Rotation, rotate

__all__ = ["CrossAttention", "SelfAttention"]


class SelfAttention(nn.Module):
    """Multi-head self-attention; rotary when a rotation is given.

    Source: vjepa2 src/models/utils/modules.py::RoPEAttention and ::Attention (c2963a4); the same
        numbers in fp32; differs in shared rotation tables, and in that rotated queries and keys
        return to the dtype of the values.
    """

    def __init__(self, width: int, *, heads: int, qkv_bias: bool = True) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=qkv_bias)
        self.proj = nn.Linear(width, width)

    def forward(self, x_BND: Tensor, rotation: Rotation | None = None) -> Tensor:
        """`[B, N, D]` -> `[B, N, D]`."""
        qkv = self.qkv(x_BND).unflatten(-1, (3, self.heads, -1))
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        if rotation is not None:
            q = rotate(q, rotation).to(v.dtype)
            k = rotate(k, rotation).to(v.dtype)
        out = scaled_dot_product_attention(q, k, v)
        return self.proj(out.transpose(1, 2).flatten(2))


class CrossAttention(nn.Module):
    """Learned queries look at tokens. There is no output projection.

    Source: vjepa2 src/models/utils/modules.py::CrossAttention (c2963a4), identical.
    """

    def __init__(self, width: int, *, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(width, width)
        self.kv = nn.Linear(width, 2 * width)

    def forward(self, queries_BQD: Tensor, tokens_BND: Tensor) -> Tensor:
        """`[B, Q, D]`, `[B, N, D]` -> `[B, Q, D]`."""
        q = self.q(queries_BQD).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        kv = self.kv(tokens_BND).unflatten(-1, (2, self.heads, -1))
        k, v = kv.permute(2, 0, 3, 1, 4).unbind(0)
        out = scaled_dot_product_attention(q, k, v)
        return out.transpose(1, 2).flatten(2)
