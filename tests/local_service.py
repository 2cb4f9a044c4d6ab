"""The real command in a process of its own, as a user starts it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Service", "child_environment", "run_streamer", "started_service"]

_STREAMER = str(Path(sys.executable).with_name("streamer"))
_START_S = 90
_STOP_S = 30
_ENV = {"OMP_NUM_THREADS": "1", "STREAMER_MODEL__THREADS": "1", "NO_COLOR": "1"}


def child_environment(settings: dict[str, str]) -> dict[str, str]:
    """Ours, with these settings of the service and no others."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("STREAMER_")}
    return clean | _ENV | settings


def run_streamer(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run(
        [_STREAMER, *arguments],
        capture_output=True,
        text=True,
        timeout=_START_S,
        env=child_environment(settings),
        check=False,
    )


@dataclass
class Service:
    """A running `streamer serve`."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    """Everything it said so far, both streams."""
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def expect(self, pattern: str, *, timeout_s: float = _START_S) -> re.Match[str]:
        """Wait for a line that matches."""
        found: list[re.Match[str]] = []

        def is_there() -> bool:
            found[:] = [m for line in self.lines if (m := re.search(pattern, line))]
            return bool(found) or self.process.poll() is not None

        with self._changed:
            self._changed.wait_for(is_there, timeout_s)
        assert found, f"{pattern!r} not in:\n" + "\n".join(self.lines)
        return found[0]

    @property
    def url(self) -> str:
        """Base URL, once it is ready."""
        return self.expect(r"ready at (http://\S+)")[1]

    def interrupt(self) -> int:
        """Ctrl-C; the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(_STOP_S)

    def read_output(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()


@contextmanager
def started_service(*arguments: str, **settings: str) -> Iterator[Service]:
    """`streamer serve --runtime local` on a free port; ended afterwards, whatever happened."""
    process = subprocess.Popen(
        [_STREAMER, "serve", "--runtime", "local", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=child_environment(settings),
    )
    service = Service(process)
    reader = threading.Thread(target=service.read_output)
    reader.start()
    try:
        yield service
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(_STOP_S)
        reader.join(_STOP_S)
        assert process.stdout is not None
        process.stdout.close()
