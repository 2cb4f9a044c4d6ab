"""Checks of the machine: cores, clock, disk, shared memory, port."""

from __future__ import annotations

import math
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from streamer.clock import format_utc, monotonic_ns, wall_ns
from streamer.doctor.finding import Finding, fail, ok, warn
from streamer.settings import Settings

__all__ = [
    "Usage",
    "check_clock",
    "check_disk",
    "check_port",
    "check_shared_memory",
    "check_threads",
    "usable_cores",
]

Usage = Callable[[Path], tuple[int, int, int]]
"""Folder -> bytes in all, used, free; `shutil.disk_usage`."""

_CGROUP = Path("/sys/fs/cgroup")
_SHM = Path("/dev/shm")
_GIB, _MIB = 1 << 30, 1 << 20
_FEW_GIB, _TOO_FEW_GIB = 5.0, 1.0
_RAY_FULL = 0.95
"""Ray makes no objects on disks fuller than this."""
_YEARS = range(2025, 2100)
_STEP_S = 0.02
_SAMPLES = 6
_PAUSE_S = 0.05


def usable_cores(cgroup: Path = _CGROUP) -> int:
    """Cores that this process may use: its affinity and the quota of its container."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    quota = _quota(cgroup)
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


def _quota(cgroup: Path) -> float | None:
    """Cores by cgroup v2 or v1."""
    try:
        if (cgroup / "cpu.max").exists():
            quota, period = (cgroup / "cpu.max").read_text().split()
        else:
            quota = (cgroup / "cpu/cpu.cfs_quota_us").read_text()
            period = (cgroup / "cpu/cpu.cfs_period_us").read_text()
        cores = float(quota) / float(period)
    except (OSError, ValueError):  # no container, or "max": no quota
        return None
    return cores if cores > 0 else None


def check_threads(settings: Settings, *, threads: int | None, cores: int) -> Finding:
    """Does torch compute with more threads than there are cores for it?

    Args:
        threads: what torch chose by itself; None when that is unknown.
        cores: usable ones.
    """
    wanted = settings.model.threads or settings.serving.device.threads or threads
    if wanted is None:
        return ok("threads", f"{cores} cores")
    found = f"torch threads: {wanted}, cores: {cores}"
    if wanted > cores:
        fix = f"Set model.threads to {cores} (STREAMER_MODEL__THREADS={cores})."
        return warn("threads", found, fix=fix)
    return ok("threads", found)


def check_clock(
    *,
    wall: Callable[[], int] = wall_ns,
    monotonic: Callable[[], int] = monotonic_ns,
    pause: Callable[[], object] = lambda: threading.Event().wait(_PAUSE_S),
) -> Finding:
    """Is it now, and does the wall clock go as evenly as the monotonic one?"""
    offsets = []
    for _ in range(_SAMPLES):
        offsets.append(wall() - monotonic())
        pause()
    now = format_utc(wall())
    if int(now[:4]) not in _YEARS:
        return fail(
            "clock", f"it says {now}", fix="Set the clock, best by NTP (chrony, timesyncd)."
        )
    spread_s = (max(offsets) - min(offsets)) / 1e9
    if spread_s > _STEP_S:
        return warn(
            "clock",
            f"the wall clock moved by {spread_s:.3f} s against the monotonic one while we looked",
            fix="Let NTP slew the clock instead of stepping it; capture times jump with it.",
        )
    return ok("clock", f"{now[:19]}Z, runs evenly")


def check_disk(usage: Usage = shutil.disk_usage) -> Finding:
    """Is there room for logs, weights and what Ray spills?"""
    folders = dict.fromkeys((Path(tempfile.gettempdir()), Path.home()))
    found = {folder: usage(folder) for folder in folders if folder.exists()}
    folder, (total, used, free) = min(found.items(), key=lambda item: item[1][2])
    fact = f"{free / _GIB:.1f} GiB free in {folder}"
    fix = f"Free some space there; {_FEW_GIB:g} GiB are comfortable."
    if free < _TOO_FEW_GIB * _GIB:
        return fail("disk", fact, fix=fix)
    if free < _FEW_GIB * _GIB:
        return warn("disk", fact, fix=fix)
    if used > _RAY_FULL * total:
        fact += f", {used / total:.0%} full: Ray makes no objects on such a disk"
        return warn("disk", fact, fix=f"Free {(used - _RAY_FULL * total) / _GIB:.1f} GiB there.")
    return ok("disk", fact)


def check_shared_memory(
    settings: Settings, *, folder: Path = _SHM, usage: Usage = shutil.disk_usage
) -> Finding:
    """Does Ray's object store fit into shared memory?"""
    if not folder.exists():
        return ok("shm", f"no {folder} on this system")
    _, _, free = usage(folder)
    need_mb = settings.ray.object_store_mb
    fact = f"{free // _MIB} MiB free in {folder}, ray.object_store_mb is {need_mb}"
    if free < need_mb * _MIB:
        fix = (
            f"Give the container more (docker run --shm-size={2 * need_mb}m; in Kubernetes an"
            " emptyDir with medium Memory), or Ray keeps clips on the disk, which is slow."
        )
        return warn("shm", fact, fix=fix)
    return ok("shm", fact)


def check_port(settings: Settings, *, ask: Callable[[str], str | None]) -> Finding:
    """Can the service listen where it is to?

    Args:
        ask: base URL -> version of the streamer that answers there; None: something else does.
    """
    host, port = settings.server.host, settings.server.port
    if port == 0:
        return ok("port", "any free one")
    shown = f"[{host}]" if ":" in host else host
    error = _why_not_bound(host, port)
    if error is None:
        return ok("port", f"{shown}:{port} is free")
    version = ask(f"http://{shown}:{port}")
    if version is not None:
        return ok("port", f"a streamer {version} runs at {shown}:{port}")
    fix = "Stop what listens there, or choose another one with --port (0 takes a free one)."
    return fail("port", f"{shown}:{port} cannot be had: {error.strerror or error}", fix=fix)


def _why_not_bound(host: str, port: int) -> OSError | None:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        return error
    return None
