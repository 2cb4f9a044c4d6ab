"""Every test module names its kind; the suite runs from fast to slow."""

from __future__ import annotations

import os

import pytest

KINDS = ("unit", "contract", "parity", "perf", "serve", "e2e")

# Two-core machines: one thread per process, or the tests' processes fight each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Every Ray that a test starts, in this process or another, refuses references that are pickled out
# of band: Ray would pin their objects for ever.
os.environ.setdefault("RAY_allow_out_of_band_object_ref_serialization", "0")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order: dict[pytest.Item, int] = {}
    for item in items:
        kinds = [kind for kind in KINDS if item.get_closest_marker(kind)]
        if len(kinds) != 1:
            raise pytest.UsageError(f"{item.nodeid}: declare one pytestmark of {KINDS}")
        order[item] = KINDS.index(kinds[0])
    items.sort(key=order.__getitem__)
