"""What one check found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from streamer.errors import ConfigError, StreamerError

__all__ = ["Finding", "Status", "fail", "failed", "ok", "warn"]

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of `streamer doctor`."""

    check: str
    """Short name, such as `torch`."""
    status: Status
    """`fail`: the service will not work; `warn`: it will, with a drawback."""
    fact: str
    """What was found."""
    fix: str = ""
    """What to do about it; empty when `ok`."""


def ok(check: str, fact: str) -> Finding:
    return Finding(check=check, status="ok", fact=fact)


def warn(check: str, fact: str, *, fix: str) -> Finding:
    return Finding(check=check, status="warn", fact=fact, fix=fix)


def fail(check: str, fact: str, *, fix: str) -> Finding:
    return Finding(check=check, status="fail", fact=fact, fix=fix)


def failed(check: str, error: StreamerError, *, fix: str) -> Finding:
    """An error as a finding.

    Args:
        fix: what to do, unless it is a `ConfigError` whose later sentences say it.
    """
    if not isinstance(error, ConfigError):
        return fail(check, error.message, fix=fix)
    fact, _, rest = error.message.partition(". ")
    return fail(check, fact.removesuffix("."), fix=rest or fix)
