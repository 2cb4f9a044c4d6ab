"""What runs below a process, by /proc."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

__all__ = ["assert_gone", "descendants", "is_running"]


def descendants(root: int) -> dict[int, str]:
    """Processes below `root` with the titles that Ray gives them."""
    parents: dict[int, int] = {}
    titles: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
                titles[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])

    def is_below(pid: int) -> bool:
        while pid > 1:
            pid = parents.get(pid, 0)
            if pid == root:
                return True
        return False

    return {pid: title for pid, title in titles.items() if is_below(pid)}


def assert_gone(pids: Iterable[int]) -> None:
    """Ray's own reaper may need a moment. Zombies are gone; their parent here never asks."""
    end = time.monotonic() + 15
    while left := [pid for pid in pids if is_running(pid)]:
        assert time.monotonic() < end, left
        time.sleep(0.1)


def is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
