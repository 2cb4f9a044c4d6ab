"""Who may do what: bearer tokens and feed tickets.

Without a tokens file everybody may do everything, which is why such a gateway stays on loopback
(`check_exposure`). With one, every route needs the scope that stands next to it (`guard.py`).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers

from streamer.clock import wall_ns
from streamer.errors import ConfigError, Forbidden, Unauthorized
from streamer.gateway.config import GatewayConfig
from streamer.gateway.ticket_codec import sign, verify
from streamer.gateway.tokens import SCOPES, Scope, Token, TokenFile

__all__ = ["Gate", "Grant", "NotAuthenticated", "ScopeMissing", "check_exposure", "is_loopback"]

_REALM = 'Bearer realm="streamer"'
_INVALID = f'{_REALM}, error="invalid_token"'


class NotAuthenticated(Unauthorized):
    """No token where one is needed, or one that nobody issued.

    Args:
        message: sentence.
        challenge: value of `WWW-Authenticate`.
    """

    def __init__(self, message: str, challenge: str = _REALM) -> None:
        super().__init__(message, challenge)
        self.challenge = challenge


class ScopeMissing(Forbidden):
    """A good token, for something else.

    Args:
        message: sentence that names the scope.
        challenge: value of `WWW-Authenticate`.
    """

    def __init__(self, message: str, challenge: str = _REALM) -> None:
        super().__init__(message, challenge)
        self.challenge = challenge


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What one request or socket may do."""

    name: str = ""
    """Of the token; empty for everybody."""
    scopes: Collection[Scope] = SCOPES
    token: Token | None = None
    """None: no tokens are configured."""
    streams: frozenset[str] | None = None
    """The only streams that a ticket opens; None: all."""

    def check_stream(self, stream: str) -> None:
        """Raises `ScopeMissing` when a ticket is for other streams."""
        if self.streams is not None and stream not in self.streams:
            raise ScopeMissing(f"This ticket does not open stream {stream[:80]!r}.")


class Gate:
    """Knows the tokens. One per app.

    Args:
        config: has the name of the tokens file, if there is one.
        wall: UTC nanoseconds now.

    Raises:
        ConfigError: the file cannot be used.
    """

    def __init__(self, config: GatewayConfig, *, wall: Callable[[], int] = wall_ns) -> None:
        self._file = TokenFile(Path(config.tokens_file)) if config.tokens_file else None
        self._ticket_s = config.ticket_s
        self._wall = wall

    @property
    def is_open(self) -> bool:
        """No tokens are configured."""
        return self._file is None

    def admit(self, headers: Headers, scope: Scope) -> Grant:
        """What this `Authorization` header permits.

        Raises:
            NotAuthenticated: no token, or a wrong one.
            ScopeMissing: the token lacks `scope`.
        """
        if self._file is None:
            return Grant()
        token = self._file.current().find(_bearer(headers))
        if token is None:
            raise NotAuthenticated("Nobody issued this token, or it was taken back.", _INVALID)
        return _granted(token, scope)

    def admit_feed(self, headers: Headers, *, ticket: str | None) -> Grant:
        """The same for a feed, which a ticket opens too. Raises as `admit` does."""
        if self._file is None or ticket is None or "authorization" in headers:
            return self.admit(headers, "read")
        now_s = self._wall() // 1_000_000_000
        found = verify(ticket, self._file.current(), now_s=now_s)
        if found is None:
            raise NotAuthenticated(
                "This ticket is not good or no longer so; POST /v1/tickets gives a new one.",
                _INVALID,
            )
        token, claims = found
        streams = None if claims.streams is None else frozenset(claims.streams)
        return _granted(token, "read", streams=streams)

    def is_valid(self, grant: Grant) -> bool:
        """Whether the token behind it is still there as it was."""
        if self._file is None or grant.token is None:
            return True
        return self._file.current().named(grant.token.name) == grant.token

    def ticket(self, grant: Grant, streams: Sequence[str] | None) -> tuple[str, float]:
        """A ticket for these streams (None: all), and for how many seconds it is good."""
        if grant.token is None:
            return "anonymous", self._ticket_s
        expires_s = self._wall() // 1_000_000_000 + round(self._ticket_s)
        return sign(grant.token, expires_s=expires_s, streams=streams), self._ticket_s


def _bearer(headers: Headers) -> str:
    value = headers.get("authorization")
    if value is None:
        raise NotAuthenticated("This needs a token: send the header Authorization: Bearer <token>.")
    scheme, _, token = value.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise NotAuthenticated("The header Authorization must read: Bearer <token>.")
    return token.strip()


def _granted(token: Token, scope: Scope, *, streams: frozenset[str] | None = None) -> Grant:
    if not token.has(scope):
        raise ScopeMissing(
            f"Token {token.name} lacks the scope {scope!r}.",
            f'{_REALM}, error="insufficient_scope", scope="{scope}"',
        )
    scopes = SCOPES if "admin" in token.scopes else token.scopes
    return Grant(name=token.name, scopes=scopes, token=token, streams=streams)


def check_exposure(host: str, *, has_tokens: bool, allow_anonymous: bool) -> None:
    """Whether a service may be bound to `host`.

    Raises:
        ConfigError: others can reach this address and there are no tokens.
    """
    if has_tokens or allow_anonymous or is_loopback(host):
        return
    raise ConfigError(
        f"{host} can be reached from other machines and there are no access tokens. Make one with"
        " `streamer token new NAME` and name its file in gateway.tokens_file"
        " (STREAMER_GATEWAY__TOKENS_FILE), bind 127.0.0.1, or say server.allow_anonymous: true"
        " (STREAMER_SERVER__ALLOW_ANONYMOUS=true) where something else keeps strangers out."
    )


def is_loopback(host: str) -> bool:
    """Whether a name or address is this machine's own, out of others' reach."""
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return host.lower() == "localhost"
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
