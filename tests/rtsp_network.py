"""Bad networks for RTSP tests: a server that never answers, a proxy that stops inside a packet."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self

__all__ = ["SilentServer", "StallingProxy", "free_port"]


def free_port() -> int:
    """A port of 127.0.0.1 on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class _Listener:
    """Accepts connections in a thread and hands them to `_serve`."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._open: list[socket.socket] = [self._listening]
        self._threads = [threading.Thread(target=self._accept)]

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self._open.append(client)
                self._serve(client)

    def _serve(self, client: socket.socket) -> None:
        """Silence: the client is kept, nothing is said."""

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        for thread in self._threads:
            thread.join(timeout=5)


class SilentServer(_Listener):
    """Accepts and never says a word."""


class StallingProxy(_Listener):
    """Forwards to a port of 127.0.0.1 until told to stall."""

    def __init__(self, target_port: int) -> None:
        super().__init__()
        self._target_port = target_port
        self._stalling = threading.Event()

    def stall_inside_a_packet(self) -> None:
        """The next bytes from the camera are cut in half, then nothing more ever comes."""
        self._stalling.set()

    def heal(self) -> None:
        """Connections made from now on are forwarded; the cut ones stay silent."""
        self._stalling.clear()

    def _serve(self, client: socket.socket) -> None:
        camera = socket.create_connection(("127.0.0.1", self._target_port))
        self._open.append(camera)
        for source, target, cuts in ((client, camera, False), (camera, client, True)):
            thread = threading.Thread(
                target=self._pump, args=(source, target), kwargs={"cuts": cuts}
            )
            self._threads.append(thread)
            thread.start()

    def _pump(self, source: socket.socket, target: socket.socket, *, cuts: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if cuts and self._stalling.is_set():
                    target.sendall(data[: len(data) // 2])
                    return
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)
