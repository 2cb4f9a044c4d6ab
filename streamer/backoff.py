"""How long to wait before the next try. Sans-I/O: delays come out, nobody sleeps here."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Backoff", "delays"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """One row of a retry table. The default suits what usually comes back by itself.

    Raises:
        ValueError: delays that cannot work.
    """

    first_s: float = 0.5
    """Delay after the first failure, seconds."""
    factor: float = 2.0
    """Growth per failure; 1 keeps the delay fixed."""
    cap_s: float = 30.0
    """No delay is longer, jitter included."""
    jitter: float = 0.2
    """Each delay is spread by up to this fraction both ways, so that many cameras behind one
    switch do not come back in step; 0 gives exact delays."""
    max_tries: int | None = None
    """Tries in all, the first one included; None: without end."""

    def __post_init__(self) -> None:
        if not 0 < self.first_s <= self.cap_s < math.inf:
            raise ValueError(
                f"Back-off starts at {self.first_s} s with a cap of {self.cap_s} s;"
                " it needs 0 < first <= cap."
            )
        if not 1 <= self.factor < math.inf:
            raise ValueError(f"The back-off factor is {self.factor}; it must be 1 or more.")
        if not 0 <= self.jitter < 1:
            raise ValueError(f"The back-off jitter is {self.jitter}; it must be in [0, 1).")
        if self.max_tries is not None and self.max_tries < 1:
            raise ValueError(f"max_tries is {self.max_tries}; it must be 1 or more.")


def delays(backoff: Backoff, *, rng: random.Random | None = None) -> Iterator[float]:
    """Seconds to wait after the first, second, ... failure; ends when no try is left.

    Start a new iterator to forget the failures. At the cap delays spread below it, never above.

    Args:
        backoff: the row to follow.
        rng: source of the jitter; None: an unseeded one.
    """
    rng = rng or random.Random()
    ceiling = backoff.cap_s / (1 + backoff.jitter)
    base = backoff.first_s
    failures = 0
    while backoff.max_tries is None or failures + 1 < backoff.max_tries:
        failures += 1
        base = min(base, ceiling)
        yield base * rng.uniform(1 - backoff.jitter, 1 + backoff.jitter)
        base *= backoff.factor
