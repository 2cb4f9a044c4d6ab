"""Keeps a replica from listening where nobody of ours calls.

Serve 2.60 opens in every replica a gRPC server for by-value handle calls, on all interfaces and
whether such calls are made or not; it unpickles whatever it is sent. Nothing configures its
address, so it is changed where it is passed. Other replicas dial the node's address: that stays.
"""

from __future__ import annotations

from typing import Any

import ray
from ray.serve._private import replica as _replica

__all__ = ["listen_on_node_only"]

_EVERYWHERE = "[::]:0"


def listen_on_node_only() -> None:
    """Call in a replica's constructor: Serve opens the server right after it.

    On a Ray of our own the node's address is loopback.
    """
    replica: Any = _replica
    bind = replica.add_port_to_grpc_server
    host: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]  # as Ray has it
    here = f"[{host}]:0" if ":" in host else f"{host}:0"

    def bind_here(server: Any, address: str) -> Any:
        return bind(server, here if address == _EVERYWHERE else address)

    replica.add_port_to_grpc_server = bind_here
