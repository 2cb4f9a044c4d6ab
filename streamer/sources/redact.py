"""Texts that are safe to show: URLs without credentials."""

from __future__ import annotations

import re
from urllib.parse import unquote

__all__ = ["redact", "redact_text"]

_HIDDEN = "***"
_URL_IN_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://\S+")
_ASSIGNMENT = re.compile(r"([^\s=&;?#/@]+)=([^\s&;#/]*)")
_SECRET_NAME = re.compile(
    r"pass|pwd|passwd|psw|secret|token|key|auth|sig|cred|session|ticket|user", re.I
)
_SHORT_SECRET_NAMES = frozenset({"p", "pw", "u", "sid", "jwt", "code"})


def redact(url: str) -> str:
    """The URL without user and password, and without the values of secret-looking parameters.

    Everything between ``://`` and the *last* ``@`` counts as credentials, so that a password with
    raw ``/``, ``?``, ``#`` or ``@`` never shows: rather too much hidden than too little.
    Applying it twice changes nothing.
    """
    start, rest = _split_start(url)
    if start.lower().startswith("file:"):
        return start + _hide_values(rest)
    _, at, rest = rest.rpartition("@")
    return start + (f"{_HIDDEN}@" if at else "") + _hide_values(rest)


def redact_text(text: str) -> str:
    """`redact` for every URL inside a longer text, such as the message of a foreign exception."""
    return _URL_IN_TEXT.sub(lambda found: redact(found.group()), text)


def _split_start(url: str) -> tuple[str, str]:
    for separator in ("://", ":"):
        before, found, rest = url.partition(separator)
        if found:
            return before + found, rest
    return "", url


def _hide_values(rest: str) -> str:
    return _ASSIGNMENT.sub(_hide_value, rest)


def _hide_value(found: re.Match[str]) -> str:
    name, value = found.groups()
    return f"{name}={_HIDDEN}" if value and _is_secret(unquote(name)) else found.group()


def _is_secret(name: str) -> bool:
    return name.lower() in _SHORT_SECRET_NAMES or _SECRET_NAME.search(name) is not None
