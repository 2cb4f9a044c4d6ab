"""Feed tickets: a token's permission to follow feeds, for a minute, short enough for a URL.

A browser can set no header on a WebSocket or an EventSource, and a token in a URL would end up in
logs. A ticket is signed with the hash of the token it was made from, so every gateway that knows
the token can check it and none has to remember it; it dies with the token. It opens feeds and
nothing else. Until it expires it may be used more than once.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from streamer.gateway.tokens import Token, Tokens

__all__ = ["Claims", "sign", "verify"]

_PURPOSE = b"streamer feed ticket v1\n"
_MAX_CHARS = 8192


class Claims(BaseModel):
    """What a ticket says."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    token: Annotated[str, Field(max_length=64)]
    """Name of the token it was made from."""
    expires_s: int
    """UTC, whole seconds since 1970."""
    streams: tuple[str, ...] | None = None
    """The only streams it opens; None: all."""


def sign(token: Token, *, expires_s: int, streams: Sequence[str] | None) -> str:
    """A ticket that ends at `expires_s` (UTC seconds)."""
    claims = Claims(
        token=token.name,
        expires_s=expires_s,
        streams=None if streams is None else tuple(streams),
    )
    payload = _encode(claims.model_dump_json(exclude_none=True).encode())
    return f"{payload}.{_signature(token, payload)}"


def verify(ticket: str, tokens: Tokens, *, now_s: int) -> tuple[Token, Claims] | None:
    """The token behind a ticket, and what the ticket says; None when it is not good."""
    payload, dot, signature = ticket.partition(".")
    if not dot or len(ticket) > _MAX_CHARS or not ticket.isascii():
        return None
    try:
        claims = Claims.model_validate_json(_decode(payload))
    except (ValidationError, binascii.Error):
        return None
    token = tokens.named(claims.token)
    if token is None or not hmac.compare_digest(signature, _signature(token, payload)):
        return None
    return None if claims.expires_s <= now_s else (token, claims)


def _signature(token: Token, payload: str) -> str:
    return _encode(hmac.digest(token.digest, _PURPOSE + payload.encode(), "sha256"))


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
