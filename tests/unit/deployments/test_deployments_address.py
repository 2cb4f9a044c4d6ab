"""Finding a running Ray without asking Ray."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from deployments.address import Cluster, find_cluster
from streamer.errors import ConfigError

pytestmark = pytest.mark.unit


@pytest.fixture
def port() -> Iterator[int]:
    """Something listens there, on loopback only."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


def test_a_cluster_on_loopback_is_told_from_others(port: int) -> None:
    found = find_cluster(f"127.0.0.1:{port}")
    assert found == Cluster(address=f"127.0.0.1:{port}", is_on_loopback=True)
    with socket.socket() as listening:
        listening.bind(("0.0.0.0", 0))
        listening.listen()
        everywhere = f"127.0.0.1:{listening.getsockname()[1]}"
        assert not find_cluster(everywhere).is_on_loopback


def test_auto_is_what_this_machine_noted(port: int, tmp_path: Path) -> None:
    noted = tmp_path / "ray_current_cluster"
    noted.write_text(f"127.0.0.1:{port}\n")
    assert find_cluster("auto", current=noted) == Cluster(address="auto", is_on_loopback=True)
    with pytest.raises(ConfigError, match="ray start --head"):
        find_cluster("auto", current=tmp_path / "none")


@pytest.mark.parametrize("variable", ["RAY_TMPDIR", "TMPDIR"])
def test_ray_notes_its_cluster_where_the_environment_says(
    variable: str, port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text(f"127.0.0.1:{port}\n")
    monkeypatch.delenv("RAY_TMPDIR", raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    assert find_cluster("auto").address == "auto"


def test_where_nothing_answers_is_told() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ConfigError, match=f"No Ray answers at '127.0.0.1:{port}'"):
        find_cluster(f"127.0.0.1:{port}")


@pytest.mark.parametrize("address", ["ray://head:10001", "head", "head:", ":6379", "head:port"])
def test_what_is_no_address_is_told(address: str) -> None:
    with pytest.raises(ConfigError, match="host:port"):
        find_cluster(address)
