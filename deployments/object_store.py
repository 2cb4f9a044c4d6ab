"""How full the object store of a Ray on this machine is, asked from outside of its cluster.

For measurements: whoever asks need not join, so that nothing of the cluster is changed by it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from deployments.environment import prepare
from streamer.errors import NotFound

__all__ = ["find_object_store"]

_GCS = re.compile(r"--gcs-address=([\w.:\[\]]+)")
_ACCESS = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")


def find_object_store(pids: Iterable[int]) -> Callable[[], int]:
    """The store of the Ray whose raylet is among these processes; call the answer for bytes used.

    Blocks. Call it before anything else of this process imports ray.

    Raises:
        NotFound: none of them is a raylet.
    """
    for pid in pids:
        words = _read(pid, "cmdline")
        if words and words[0].endswith("/raylet"):
            address = next(found[1] for word in words if (found := _GCS.search(word)))
            return _asking(address, environment=_read(pid, "environ"))
    raise NotFound("No Ray runs below this process.")


def _asking(address: str, *, environment: list[str]) -> Callable[[], int]:
    access = dict(line.partition("=")[::2] for line in environment)
    os.environ.update({name: access[name] for name in _ACCESS if name in access})
    prepare(on_loopback=True)
    from ray._private import internal_api

    calls: Any = internal_api  # it has no types
    nodes = calls.get_state_from_address(address).node_table()
    node = next(each for each in nodes if each["Alive"])
    place = (node["NodeManagerAddress"], node["NodeManagerPort"])

    def used() -> int:
        reply = calls.node_stats(*place, include_memory_info=False)
        return int(reply.store_stats.object_store_bytes_used)

    return used


def _read(pid: int, name: str) -> list[str]:
    try:
        return (Path("/proc") / str(pid) / name).read_text(errors="replace").split("\0")
    except OSError:  # gone, or somebody else's
        return []
