"""The same question about many things, several at once but not all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

__all__ = ["asked_of_each"]

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_AT_ONCE = 32


async def asked_of_each(
    items: Sequence[Item], ask: Callable[[Item], Awaitable[Answer]], *, at_once: int = _AT_ONCE
) -> list[Answer]:
    """The answers in order. Cancellation cancels the questions under way.

    Raises: what the first question that fails raises.
    """
    answers: list[Answer] = []
    for begin in range(0, len(items), at_once):
        answers += await asyncio.gather(*map(ask, items[begin : begin + at_once]))
    return answers
