"""Why a connection to a camera ended, and what to do next.

FFmpeg says it badly: one class (`InvalidDataError`) stands for an open timeout, an unreachable
network, a server that dies during the handshake and real bad data; a killed server is a normal
end of file. So the error, the time it took and the phase decide together. Texts of FFmpeg are
never repeated: they carry the URL with its password.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

import av

from streamer.clock import monotonic_ns
from streamer.errors import SourceDenied, SourceError, SourceUnavailable, SourceUnsupported

__all__ = ["ConnectionEnded", "Failure", "Phase", "Remedy", "classify", "failure", "translated"]

T = TypeVar("T")
Phase = Literal["open", "read"]
Remedy = Literal["unavailable", "unusable", "denied"]
"""The row of the retry table, by the name of its field in `RtspConfig`."""

_ERRORS: dict[Remedy, type[SourceError]] = {
    "unavailable": SourceUnavailable,
    "unusable": SourceUnsupported,
    "denied": SourceDenied,
}
_REMEDIES: dict[str, tuple[Remedy, str]] = {
    "refused": ("unavailable", "Nothing listens there; check address and port, and the power."),
    "unknown_host": ("unavailable", "The host name does not resolve; check it and the DNS."),
    "unreachable": (
        "unavailable",
        "It cannot be reached, hung up while connecting, or has a certificate we do not trust.",
    ),
    "no_answer": ("unavailable", "It accepts connections but does not answer."),
    "rejected": ("unavailable", "It answered with an error; it may serve too many viewers."),
    "eof": ("unavailable", "The camera ended the stream."),
    "reset": ("unavailable", "The connection broke."),
    "stalled": ("unavailable", "The camera stopped sending."),
    "broken_stream": ("unavailable", "What the camera sends cannot be understood."),
    "decode_errors": ("unavailable", "Most pictures are broken; check the network to the camera."),
    "no_key_frame": ("unavailable", "No complete picture came; check the key frame interval."),
    "not_found": ("unusable", "The camera knows no such path; check the path of the URL."),
    "no_video": ("unusable", "The camera sends no video there; choose a video path."),
    "unsupported": ("unusable", "The camera's codec or transport is not supported."),
    "too_large": ("unusable", "The picture is too large; use a substream or raise max_pixels."),
    "unauthorized": ("denied", "The camera refused user or password."),
}
_NETWORK_DOWN = {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN}
_TABLE: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str, str], ...] = (
    # foreign class, reason while opening, reason while reading; first match counts
    ((av.error.HTTPUnauthorizedError, av.error.HTTPForbiddenError), "unauthorized", "unauthorized"),
    (av.error.HTTPNotFoundError, "not_found", "not_found"),
    ((av.error.HTTPClientError, av.error.HTTPServerError), "rejected", "rejected"),
    ((av.error.ExitError, av.error.TimeoutError), "no_answer", "stalled"),
    (av.error.ConnectionRefusedError, "refused", "reset"),
    (
        (
            av.error.ConnectionResetError,
            av.error.ConnectionAbortedError,
            av.error.BrokenPipeError,
            av.error.EOFError,
        ),
        "unreachable",
        "reset",
    ),
    ((av.error.LookupError, av.error.PatchWelcomeError), "unsupported", "unsupported"),
    ((av.error.NotImplementedError, av.error.ArgumentError), "unsupported", "broken_stream"),
    (av.error.OSError, "unreachable", "reset"),
    (av.FFmpegError, "unreachable", "broken_stream"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One ended connection."""

    reason: str
    """Short code for `SourceState.reason` and metrics."""
    detail: str
    """One sentence for people, without credentials."""
    remedy: Remedy

    def as_error(self) -> SourceError:
        return _ERRORS[self.remedy](self.detail)


class ConnectionEnded(Exception):
    """Carries a `Failure` from wherever the connection broke to the loop that reconnects."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.detail, failure)
        self.failure = failure


def failure(reason: str, *, name: str, fact: str = "") -> Failure:
    """The failure of that reason code, told about the camera `name` (redacted)."""
    remedy, advice = _REMEDIES[reason]
    extra = f" ({fact})" if fact else ""
    return Failure(reason=reason, detail=f"{name}: {advice}{extra}", remedy=remedy)


def translated(call: Callable[[], T], *, phase: Phase, name: str, timeout_s: float) -> T:
    """What `call` returns; FFmpeg's errors become `ConnectionEnded`.

    Args:
        phase: what the call does.
        name: redacted name of the camera.
        timeout_s: the time limit that FFmpeg has in this call: an unclear error after (almost)
            that time is a timeout.
    """
    started_ns = monotonic_ns()
    try:
        return call()
    except av.FFmpegError as error:
        elapsed_s = (monotonic_ns() - started_ns) / 1e9
        reason = classify(error, phase=phase, timed_out=elapsed_s >= 0.9 * timeout_s)
    # Outside the handler: neither cause nor context may carry FFmpeg's text with the password.
    raise ConnectionEnded(failure(reason, name=name))


def classify(error: av.FFmpegError, *, phase: Phase, timed_out: bool) -> str:
    """Reason code of one of FFmpeg's errors."""
    opening = phase == "open"
    if error.errno in _NETWORK_DOWN:
        return "unreachable"
    if isinstance(error, av.error.InvalidDataError) and timed_out:
        return "no_answer" if opening else "stalled"
    for foreign, while_opening, while_reading in _TABLE:
        if isinstance(error, foreign):
            return while_opening if opening else while_reading
    return "unreachable" if opening else "broken_stream"
