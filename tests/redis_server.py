"""A real redis-server for one test: started, stopped, frozen and starved as the test likes."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import redis
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from redis.backoff import NoBackoff
from redis.retry import Retry

__all__ = ["RedisServer", "certificate", "free_port", "running_redis"]

_START_S = 20.0
# Written before the answer, so that a killed server has it. (`everysec` holds writes back for up
# to two seconds while the disk is busy.)
_DEFAULTS = {"appendonly": "yes", "appendfsync": "no", "save": ""}


class RedisServer:
    """One server on a free port of loopback and on a socket file, with its own folder.

    Args:
        folder: where its data and log are.
        config: further directives of redis.conf, which win over the defaults.
    """

    def __init__(self, folder: Path, **config: str) -> None:
        self.folder = folder
        self.port = free_port()
        self._config = _DEFAULTS | {k.replace("_", "-"): v for k, v in config.items()}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def socket_url(self) -> str:
        return f"unix://{self._socket}?db=0"

    @property
    def _socket(self) -> Path:
        return self.folder / "redis.sock"

    def start(self) -> None:
        """Return when it answers."""
        program = shutil.which("redis-server") or shutil.which("valkey-server")
        assert program is not None, "redis-server is missing; run `make system`"
        options = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "unixsocket": str(self._socket),
            "dir": str(self.folder),
            "logfile": str(self.folder / "redis.log"),
            "daemonize": "no",
        }
        arguments = [part for k, v in (options | self._config).items() for part in (f"--{k}", v)]
        self._process = subprocess.Popen(
            [program, *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._await_answer()

    def stop(self) -> None:
        """SIGKILL: what a crash leaves behind. Also for a child that just writes its files."""
        if self._process is not None:
            self.resume()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(_START_S)
            self._process = None

    def restart(self, *, is_empty: bool = False) -> None:
        """Stop if it runs, and start on the same port, with its data or without."""
        self.stop()
        if is_empty:
            self.forget()
        self.start()

    def forget(self) -> None:
        """Remove the data of a stopped server."""
        for kept in self.folder.iterdir():
            if kept.is_dir():
                shutil.rmtree(kept)
            elif kept.suffix in (".rdb", ".aof"):
                kept.unlink()

    def freeze(self) -> None:
        """SIGSTOP: connections stay, nothing is answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)

    def command(self, *words: str) -> Any:
        """One command as the operator, like ``CONFIG SET maxmemory 1mb``."""
        with redis.Redis(
            unix_socket_path=str(self._socket),
            password=self._config.get("requirepass"),
            protocol=2,
            retry=Retry(NoBackoff(), 0),
        ) as client:
            return client.execute_command(*words)

    def await_replica_of(self, primary: RedisServer) -> None:
        """Return when everything that is in `primary` now is here, too."""
        goal = primary.command("INFO", "replication")["master_repl_offset"]
        end = time.monotonic() + _START_S
        while time.monotonic() < end:
            facts = self.command("INFO", "replication")
            if facts["master_link_status"] == "up" and facts["slave_repl_offset"] >= goal:
                return
            time.sleep(0.01)  # there is nothing to wait on
        raise AssertionError(f"the replica does not catch up:\n{self._log()}")

    def _await_answer(self) -> None:
        end = time.monotonic() + _START_S
        while time.monotonic() < end:
            assert self._process is not None and self._process.poll() is None, self._log()
            try:
                self.command("PING")
                return
            except redis.ConnectionError:
                time.sleep(0.01)  # there is nothing to wait on before it listens
        raise AssertionError(f"redis-server does not answer:\n{self._log()}")

    def _log(self) -> str:
        log = self.folder / "redis.log"
        return log.read_text() if log.exists() else "no log"


@contextmanager
def running_redis(**config: str) -> Iterator[RedisServer]:
    """A server in a folder of its own, both gone afterwards."""
    # Not below tmp_path: the name of a socket file must be short.
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:
        server = RedisServer(Path(folder), **config)
        server.start()
        try:
            yield server
        finally:
            server.stop()


def free_port() -> int:
    """A TCP port of loopback that nobody has now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def certificate(folder: Path) -> dict[str, str]:
    """Key and self-signed certificate of localhost, as directives of redis.conf."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    cert = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(cert.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return {
        "tls-cert-file": str(folder / "cert.pem"),
        "tls-key-file": str(folder / "key.pem"),
        "tls-ca-cert-file": str(folder / "cert.pem"),
        "tls-auth-clients": "no",
    }
