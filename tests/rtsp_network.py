"""Bad networks for RTSP tests: a server that never answers, a proxy that stops inside a packet."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

__all__ = ["Proxy", "SilentServer", "free_port", "self_signed"]


def free_port() -> int:
    """A port of 127.0.0.1 on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def self_signed(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server context for 127.0.0.1, and the file with its certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "camera")])
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, key_pem = folder / "camera.pem", folder / "camera.key"
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_pem.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key_pem)
    return context, pem


class _Listener:
    """Accepts connections in a thread and hands them to `_serve`."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._open: list[socket.socket] = []
        self._accepting = threading.Thread(target=self._accept)
        self._threads: list[threading.Thread] = []

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self._open.append(client)
                self._serve(client)

    def _serve(self, client: socket.socket) -> None:
        """Silence: the client is kept, nothing is said."""

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Not the connections first: a client that comes again meanwhile would be left over.
        _close(self._listening)
        self._accepting.join(timeout=5)
        for connection in self._open:
            _close(connection)
        for thread in self._threads:
            thread.join(timeout=5)


def _close(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


class SilentServer(_Listener):
    """Accepts and never says a word."""


class Proxy(_Listener):
    """Forwards to a port of 127.0.0.1, until told to stall.

    Args:
        target_port: where the camera listens.
        tls: speaks TLS to its clients with the certificate of this context.
    """

    def __init__(self, target_port: int, *, tls: ssl.SSLContext | None = None) -> None:
        super().__init__()
        self._tls = tls
        self._target_port = target_port
        self._stalling = threading.Event()

    def stall_inside_a_packet(self) -> None:
        """The next bytes from the camera are cut in half, then nothing more ever comes."""
        self._stalling.set()

    def heal(self) -> None:
        """Connections made from now on are forwarded; the cut ones stay silent."""
        self._stalling.clear()

    def _serve(self, client: socket.socket) -> None:
        if self._tls is not None:
            try:
                client = self._tls.wrap_socket(client, server_side=True)
            except OSError:  # the client does not trust us
                return
            self._open.append(client)
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
