"""What a process and everything below it uses, by /proc."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Usage", "process_tree", "tree_usage"]

_TICKS = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Sums over processes."""

    processes: int = 0
    rss_bytes: int = 0
    """Resident memory; what processes share is counted for each."""
    pss_bytes: int = 0
    """Proportional: what is shared is divided among its users, so that sums mean something."""
    own_bytes: int = 0
    """Of that, what is no file's: heap and stacks. Libraries that programs elsewhere map or leave
    change the proportional size, and never this."""
    threads: int = 0
    fds: int = 0
    cpu_s: float = 0.0
    """Processor time used so far. What an ended process had used is no longer in it."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            processes=self.processes + other.processes,
            rss_bytes=self.rss_bytes + other.rss_bytes,
            pss_bytes=self.pss_bytes + other.pss_bytes,
            own_bytes=self.own_bytes + other.own_bytes,
            threads=self.threads + other.threads,
            fds=self.fds + other.fds,
            cpu_s=self.cpu_s + other.cpu_s,
        )


def process_tree(root: int) -> list[int]:
    """`root` and the running processes below it."""
    parents = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields and fields[0] != "Z":
                parents[int(entry.name)] = int(fields[1])
    found = [root] if root in parents else []
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def tree_usage(root: int) -> Usage:
    """All of `process_tree`, added up. A process that ends meanwhile counts for what was seen."""
    total = Usage()
    for pid in process_tree(root):
        total += _usage(pid)
    return total


def _usage(pid: int) -> Usage:
    fields = _stat(pid)
    if not fields:
        return Usage()
    memory = _memory(pid)
    return Usage(
        processes=1,
        rss_bytes=memory.get("Rss", 0),
        pss_bytes=memory.get("Pss", 0),
        own_bytes=memory.get("Pss_Anon", 0),
        threads=int(fields[17]),
        fds=_fds(pid),
        cpu_s=(int(fields[11]) + int(fields[12])) / _TICKS,
    )


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on; none for a process that is gone."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _memory(pid: int) -> dict[str, int]:
    """Sizes by name, bytes; nothing for a process that is gone or somebody else's."""
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()[1:]
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return {}
    pairs = (line.split() for line in lines)
    return {name.rstrip(":"): int(kib) * 1024 for name, kib, *_ in pairs}


def _fds(pid: int) -> int:
    try:
        return len(os.listdir(_PROC / str(pid) / "fd"))
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
