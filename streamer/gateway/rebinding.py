"""Keeps web pages out that pretend to be of this machine.

A page may let its own name resolve to 127.0.0.1 (DNS rebinding): then a browser takes our answers
for its own, and Origin equals Host. What it cannot do is send another Host than its name.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from starlette.types import Scope

from streamer.gateway.auth import is_loopback
from streamer.gateway.config import GatewayConfig

__all__ = ["STRANGE_HOST", "has_strange_host"]

STRANGE_HOST = (
    "Without access tokens this service trusts whoever calls from this machine, so it answers only"
    " to localhost, addresses and names without a dot. Call it so, make tokens, or name the host in"
    " gateway.allowed_origins, like https://streamer.example."
)


def has_strange_host(scope: Scope, host: str | None, *, config: GatewayConfig) -> bool:
    """Whether a request over loopback, trusted because of that alone, calls us by another name.

    Args:
        scope: of the request or socket.
        host: its header Host; clients that are no browsers may leave it out.
        config: tokens, and the names that an operator allows.
    """
    address = scope.get("server")
    if config.tokens_file or not host or not address or not is_loopback(address[0]):
        return False
    name = _name(f"//{host}")
    # Nobody registers a name without a dot: it is of this network.
    own = "." not in name or name.endswith(".localhost") or _is_address(name)
    return not (name and own) and name not in {_name(origin) for origin in config.allowed_origins}


def _name(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:  # no URL, like "http://["
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
