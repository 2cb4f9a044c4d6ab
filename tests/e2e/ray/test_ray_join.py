"""`streamer serve` on a Ray that was there before, and stays."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_service import started_service
from process_tree import descendants

pytestmark = pytest.mark.e2e

_RAY = str(Path(sys.executable).with_name("ray"))
# Not only loopback but also no token: both are for the machine's user alone, in a test.
_ENV = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
_AUTH = {"RAY_AUTH_MODE": "disabled"}


class Head:
    """A cluster of one node."""

    def __init__(self, folder: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        port = self.address.rpartition(":")[2]
        options = f"--head --block --port={port} --num-cpus=8 --include-dashboard=false"
        # Away from the ports that the system gives out.
        options += (
            " --min-worker-port=20000 --max-worker-port=20999 --object-store-memory=100000000"
        )
        self.process = subprocess.Popen(
            [_RAY, "start", *options.split(), f"--temp-dir={folder}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env=os.environ | _ENV | _AUTH,
        )

    def titles(self) -> list[str]:
        return list(descendants(self.process.pid).values())

    def wait_started(self) -> None:
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if "runtime started" in line:
                return
        raise AssertionError("".join(lines))

    def stop(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=30)
        # What it left behind, in its own session and nobody else's.
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


@pytest.fixture
def head() -> Iterator[Head]:
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        started = Head(folder)
        try:
            started.wait_started()
            yield started
        finally:
            started.stop()


def test_a_running_ray_is_joined_and_left_as_it_was(head: Head) -> None:
    with started_service("--runtime", "ray", "--demo", RAY_ADDRESS=head.address, **_AUTH) as one:
        one.expect(r"demo #\d+ .*surprise")
        assert any("ServeReplica" in title for title in head.titles())
        assert one.interrupt() == 0
    left = head.titles()
    assert any("raylet" in title for title in left)
    assert not any("Serve" in title for title in left)
