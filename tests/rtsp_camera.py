"""A real RTSP camera for tests, in a process of its own: start, stall, freeze, kill, restart.

::

    with RtspCamera() as camera:
        source = RtspSource(camera.url, policy=LOOPBACK)
"""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from streamer.sources.policy import SourcePolicy

__all__ = ["LOOPBACK", "RtspCamera"]

LOOPBACK = SourcePolicy(allowed_cidrs=("127.0.0.0/8", "::1/128"))
"""Source policy that lets tests reach cameras of this machine."""

_SERVER = Path(__file__).parent / "e2e" / "rtsp" / "server.py"
_PYTHON_WITH_GI = "/usr/bin/python3"


class RtspCamera:
    """One GStreamer RTSP server with a moving test picture in H.264 (or audio only)."""

    def __init__(
        self,
        *,
        fps: int = 15,
        width: int = 96,
        height: int = 96,
        pattern: str = "ball",
        path: str = "/cam",
        user: str = "",
        password: str = "",
        audio_only: bool = False,
        digest: bool = False,
        report_every_s: float = 0.0,
    ) -> None:
        """With `digest` the password is never sent, only a hash of it. `report_every_s`: about so
        often its wall clock is said; 0: as GStreamer does, some 5 s."""
        self.port = 0
        """0 until started; a restart listens on the same port again."""
        self._options = {
            "fps": fps,
            "width": width,
            "height": height,
            "pattern": pattern,
            "path": path,
            "user": user,
            "password": password,
            "audio_only": audio_only,
            "digest": digest,
            "report_every_s": report_every_s,
        }
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """With the percent-encoded credentials, if it has any."""
        user, password = (quote(str(self._options[key]), safe="") for key in ("user", "password"))
        credentials = f"{user}:{password}@" if password else ""
        return f"rtsp://{credentials}127.0.0.1:{self.port}{self._options['path']}"

    def start(self) -> Self:
        """Returns when it listens."""
        self._process = subprocess.Popen(
            [_PYTHON_WITH_GI, str(_SERVER), json.dumps({**self._options, "port": self.port})],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        word, port = self._answer().split()
        assert word == "ready"
        self.port = int(port)
        return self

    def stall(self) -> None:
        """No more frames, the connection stays."""
        self._command("stall")

    def resume(self) -> None:
        self._command("resume")

    def resize(self, width: int, height: int) -> None:
        """Another picture size from the next frame on, within the connection."""
        self._command(f"resize {width} {height}")

    def freeze(self) -> None:
        """SIGSTOP: answers nothing, the kernel still accepts."""
        self._running().send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._running().send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL; start() brings it back on the same port."""
        process, self._process = self._running(), None
        process.kill()
        process.wait(timeout=10)
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self.kill()

    def _command(self, line: str) -> None:
        stdin = self._running().stdin
        assert stdin is not None
        stdin.write(line + "\n")
        stdin.flush()
        assert self._answer() == f"done {line.split()[0]}"

    def _answer(self) -> str:
        stdout = self._running().stdout
        assert stdout is not None
        return stdout.readline().strip()

    def _running(self) -> subprocess.Popen[str]:
        assert self._process is not None, "the camera is not started"
        return self._process
