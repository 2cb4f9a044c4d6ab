"""Which running Ray is meant, and whether it is there. Imports no ray.

Ray itself needs minutes to give up on an address where nothing answers.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

from streamer.errors import ConfigError

__all__ = ["Cluster", "find_cluster"]

_ANSWER_S = 3.0
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A running Ray."""

    address: str
    """For `ray.init`: ``host:port`` of its GCS, or ``auto``, with which Ray also finds the token of
    a cluster that was started on this machine."""
    is_on_loopback: bool
    """It listens on loopback only. Ray replaces a loopback address by that of the network card
    before it connects, unless it is told not to (`environment.LOOPBACK`)."""


def find_cluster(address: str, *, current: Path | None = None) -> Cluster:
    """Look the address up and try it.

    Args:
        address: ``host:port``, or ``auto`` for what `ray start` started on this machine.
        current: where `ray start` noted that; None: where it does by itself.

    Raises:
        ConfigError: nothing answers there, or it is no such address.
    """
    target = _noted(current or _current_cluster()) if address == "auto" else address
    host, _, port = target.rpartition(":")
    host = host.strip("[]")
    if "://" in target or not host or not port.isdecimal():
        raise ConfigError(
            f"ray.address is {target!r}; give host:port of a cluster's GCS on one of its own nodes,"
            " or 'auto' (a ray:// client address cannot serve)."
        )
    if host in _LOOPBACK and _answers(_node_ip(), int(port)):
        return Cluster(address=address, is_on_loopback=False)
    if _answers(host, int(port)):
        return Cluster(address=address, is_on_loopback=host in _LOOPBACK)
    raise ConfigError(
        f"No Ray answers at {target!r}. Correct ray.address or RAY_ADDRESS, or leave both empty to"
        " start a Ray here. After a crash, `ray stop` clears what is left."
    )


def _current_cluster() -> Path:
    """Source: ray/_common/utils.py, get_ray_address_file."""
    temp = os.environ.get("RAY_TMPDIR", os.environ.get("TMPDIR", "/tmp"))
    return Path(temp, "ray", "ray_current_cluster")


def _noted(current: Path) -> str:
    try:
        return current.read_text().strip()
    except OSError as error:
        raise ConfigError(
            "ray.address is 'auto', but no Ray was started on this machine. Start one with"
            " `ray start --head`, or leave ray.address and RAY_ADDRESS empty."
        ) from error


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=_ANSWER_S).close()
    except OSError:
        return False
    return True


def _node_ip() -> str:
    """Address of the network card with the default route; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])
