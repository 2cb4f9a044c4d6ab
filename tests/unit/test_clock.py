"""Two clocks read as of one moment, whatever else the machine does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from streamer import clock

pytestmark = pytest.mark.unit

UTC_NS = 1_700_000_000 * 10**9
MS = 10**6


class Machine:
    """Each look at a clock takes a microsecond; some are followed by a pause."""

    def __init__(self, pauses: dict[int, int]) -> None:
        self._pauses = pauses
        self._looks = 0
        self._now_ns = 0

    def monotonic_ns(self) -> int:
        now_ns = self._now_ns
        self._now_ns += 1000 + self._pauses.get(self._looks, 0)
        self._looks += 1
        return now_ns

    def time_ns(self) -> int:
        return UTC_NS + self.monotonic_ns()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[int, int]], None]:
    def use(pauses: dict[int, int]) -> None:
        monkeypatch.setattr(clock, "time", Machine(pauses))

    return use


@pytest.mark.parametrize("pauses", [{}, {0: 40 * MS}, {1: 40 * MS}, {0: 40 * MS, 3: 70 * MS}])
def test_a_pause_between_the_two_clocks_shows_in_neither(
    machine: Callable[[dict[int, int]], None], pauses: dict[int, int]
) -> None:
    machine(pauses)
    monotonic_ns, wall_ns = clock.both_ns()
    assert abs(wall_ns - UTC_NS - monotonic_ns) < MS


def test_a_machine_that_always_pauses_gives_its_best(
    machine: Callable[[dict[int, int]], None],
) -> None:
    machine({look: (20 if look == 3 else 50) * MS for look in range(0, 30, 3)})
    monotonic_ns, wall_ns = clock.both_ns()
    assert abs(wall_ns - UTC_NS - monotonic_ns) <= 20 * MS + 1000
