"""ULIDs for messages that no log numbers: 48 bits of milliseconds, 80 random bits, sortable.

Source: github.com/ulid/spec, with the monotonic rule: within one millisecond (or when the wall
clock steps back) the random part is incremented.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from streamer.clock import wall_ns

__all__ = ["Ulids"]

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_RANDOM_BITS = 80
_LENGTH = 26


class Ulids:
    """A generator of ids, each greater than the one before.

    Args:
        wall: UTC nanoseconds now.
        rng: source of the random part; ids name messages, they keep no secret.
    """

    def __init__(
        self, *, wall: Callable[[], int] = wall_ns, rng: random.Random | None = None
    ) -> None:
        self._wall = wall
        self._rng = random.Random() if rng is None else rng
        self._last = -1

    def next(self) -> str:
        """26 characters of Crockford base 32."""
        millis = self._wall() // 1_000_000
        if self._last >> _RANDOM_BITS >= millis:
            value = self._last + 1
        else:
            value = (millis << _RANDOM_BITS) | self._rng.getrandbits(_RANDOM_BITS)
        self._last = value
        return "".join(_ALPHABET[(value >> shift) & 31] for shift in _SHIFTS)


_SHIFTS = tuple(5 * place for place in reversed(range(_LENGTH)))
