"""The address of the local service."""

from __future__ import annotations

import socket

import pytest

from streamer.errors import ConfigError
from streamer.gateway.server import bound_socket

pytestmark = pytest.mark.unit


def test_an_address_is_taken_at_once() -> None:
    """Two services that start together: the second one learns it now, not when it listens."""
    with bound_socket("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(ConfigError, match=f"Port {port} of 127.0.0.1 is taken"):
            bound_socket("127.0.0.1", port)
    bound_socket("127.0.0.1", port).close()


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"Cannot listen on 192\.0\.2\.1"):
        bound_socket("192.0.2.1", 0)


def test_connections_that_nobody_reads_from_end_some_time() -> None:
    with bound_socket("127.0.0.1", 0) as bound, socket.create_connection(bound.getsockname()):
        accepted, _ = bound.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 60_000
