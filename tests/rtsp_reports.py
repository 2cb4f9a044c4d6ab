"""RTSP over TCP, changed on the way: a camera's wall clock in sender reports, or its pictures."""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Iterator
from typing import Literal

from rtsp_network import Proxy

__all__ = ["GarblingProxy", "ReportProxy", "moved"]

_SENDER_REPORT = 200
# Behind the headers of RTSP and RTP and the parameter sets of H.264.
_SPOILT_FROM = 4 + 12 + 64


class _UnitProxy(Proxy):
    """Hands each answer and each interleaved packet of the camera to `_passed`."""

    def _pump(self, source: socket.socket, target: socket.socket, *, cuts: bool) -> None:
        if not cuts:  # from the client
            return super()._pump(source, target, cuts=False)
        buffer = bytearray()
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                buffer += data
                target.sendall(b"".join(self._passed(unit) for unit in _units(buffer)))
            target.shutdown(socket.SHUT_RDWR)
        return None

    def _passed(self, unit: bytes) -> bytes:
        """One answer or one interleaved packet as it goes on."""
        raise NotImplementedError


class GarblingProxy(_UnitProxy):
    """Spoils all pictures that come over TCP; what goes by UDP does not come by here."""

    def _passed(self, unit: bytes) -> bytes:
        is_rtp = unit[:1] == b"$" and unit[1] % 2 == 0
        if not is_rtp or len(unit) < _SPOILT_FROM:
            return unit
        return unit[:_SPOILT_FROM] + bytes(byte ^ 0x5A for byte in unit[_SPOILT_FROM:])


class ReportProxy(_UnitProxy):
    """Forwards RTSP over TCP to a port of 127.0.0.1 and moves or drops sender reports.

    Args:
        target_port: where the camera listens.
        ahead_s: added to the camera's wall clock from the next report on; may be changed.
        reports: whether they pass; may be changed.
    """

    def __init__(
        self, target_port: int, *, ahead_s: float = 0.0, reports: Literal["pass", "drop"] = "pass"
    ) -> None:
        super().__init__(target_port)
        self.ahead_s = ahead_s
        self.reports = reports
        self.seen = 0
        """Sender reports that came by."""

    def _passed(self, unit: bytes) -> bytes:
        """One answer or one interleaved packet as it goes on."""
        is_rtcp = unit[:1] == b"$" and unit[1] % 2 == 1
        if not is_rtcp or unit[5] != _SENDER_REPORT:
            return unit
        self.seen += 1
        return b"" if self.reports == "drop" else unit[:4] + moved(unit[4:], by_s=self.ahead_s)


def moved(report: bytes, *, by_s: float) -> bytes:
    """A sender report with another NTP time (RFC 3550, 6.4.1: 64 bits after the SSRC)."""
    ntp = int.from_bytes(report[8:16]) + round(by_s * 2**32)
    return report[:8] + ntp.to_bytes(8) + report[16:]


def _units(buffer: bytearray) -> Iterator[bytes]:
    """Take whole units out of the front of the buffer."""
    while (size := _size(buffer)) is not None and len(buffer) >= size:
        yield bytes(buffer[:size])
        del buffer[:size]


def _size(buffer: bytearray) -> int | None:
    """Of the first unit; None as long as it cannot be told."""
    if buffer[:1] == b"$":
        return 4 + int.from_bytes(buffer[2:4]) if len(buffer) >= 4 else None
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        return None
    length = re.search(rb"content-length:\s*(\d+)", buffer[:end], re.IGNORECASE)
    return end + 4 + (int(length[1]) if length else 0)
