"""The tokens that slide through a rollout, and their ids. Pure functions and one buffer."""

# B batch  N tokens  P tokens per tubelet (h*w)  D width

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["TokenWindow", "gap_ids", "newest", "token_ids"]


def newest(tokens_BND: Tensor, *, tubelets: int, places: int) -> Tensor:
    """The last `tubelets` of a token sequence `[B, N, D]`, as a view."""
    return tokens_BND[:, -tubelets * places :]


def token_ids(start: int, count: int, *, batch: int, device: torch.device) -> Tensor:
    """`count` ids from `start`, the same for all rows: `int64 [B, count]`, one row in memory."""
    return torch.arange(start, start + count, device=device).expand(batch, -1)


def gap_ids(first: int, count: int, *, gaps_B: Tensor, places: int) -> Tensor:
    """Ids of targets that leave out a number of tubelets per row.

    Args:
        first: id that follows the context.
        gaps_B: tubelets left out, `int64 [B]`.

    Returns:
        `int64 [B, count]`.
    """
    ids = torch.arange(first, first + count, device=gaps_B.device)
    return ids + places * gaps_B.unsqueeze(1)


class TokenWindow:
    """A context that slides over its own predictions without being copied.

    The context lies at the start of one buffer that has room for everything to come; a prediction
    is written behind it, and the window is a view that moves on by as much. So what was handed out
    is never overwritten.

    Args:
        context_BND: copied once.
        room: tokens that will be appended in all.
    """

    def __init__(self, context_BND: Tensor, *, room: int) -> None:
        batch, self._size, width = context_BND.shape
        self._buffer = context_BND.new_empty(batch, self._size + room, width)
        self._buffer[:, : self._size] = context_BND
        self._start = 0

    @property
    def tokens(self) -> Tensor:
        """The context as it is now, `[B, N, D]`, a view."""
        return self._buffer[:, self._start : self._start + self._size]

    def append(self, predicted_BND: Tensor) -> Tensor:
        """Let the oldest tokens out and these in; give them back as they are kept, a view."""
        end = self._start + self._size
        count = predicted_BND.shape[1]
        if end + count > self._buffer.shape[1]:
            raise ValueError("more tokens were appended than the window has room for")
        kept = self._buffer[:, end : end + count]
        kept.copy_(predicted_BND)
        self._start += count
        return kept
