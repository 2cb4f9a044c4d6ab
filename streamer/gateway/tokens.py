"""The access tokens of a gateway: a file of their hashes, read again when it changes.

A token is 256 random bits, so a plain SHA-256 of it cannot be turned back and needs no salt. The
file holds hashes only, as YAML (or JSON, which is YAML)::

    - {name: dashboard, sha256: 5e88..., scopes: [read]}
    - {name: operator, sha256: 2c26..., scopes: [read, write]}

Keep it readable for the service alone: whoever reads the hashes can sign feed tickets with them.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Literal, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from streamer.clock import monotonic_ns
from streamer.errors import ConfigError

__all__ = [
    "SCOPES",
    "Scope",
    "Token",
    "TokenFile",
    "Tokens",
    "new_token",
    "parse_tokens",
    "read_tokens",
]

log = logging.getLogger(__name__)

Scope = Literal["read", "write", "plan", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
_PREFIX = "streamer_"
_MAX_BYTES = 256 * 1024
_LOOK_NS = 1_000_000_000


class Token(BaseModel):
    """One line of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    """Whose it is; stands in the log."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Hash of the token."""
    scopes: Annotated[tuple[Scope, ...], Field(min_length=1)]
    """What it may do; `admin` includes the others."""

    @property
    def digest(self) -> bytes:
        return bytes.fromhex(self.sha256)

    def has(self, scope: Scope) -> bool:
        return scope in self.scopes or "admin" in self.scopes


_entries: TypeAdapter[list[Token]] = TypeAdapter(list[Token])


class Tokens:
    """An immutable set of tokens."""

    def __init__(self, tokens: Iterable[Token]) -> None:
        self._by_name = {token.name: token for token in tokens}

    def __len__(self) -> int:
        return len(self._by_name)

    def named(self, name: str) -> Token | None:
        return self._by_name.get(name)

    def find(self, presented: str) -> Token | None:
        """The entry of this token. Takes as long for a wrong one as for a right one."""
        digest = hashlib.sha256(presented.encode(errors="replace")).digest()
        found = None
        for token in self._by_name.values():
            if hmac.compare_digest(token.digest, digest):
                found = token
        return found


def new_token(name: str, scopes: Iterable[str]) -> tuple[str, Token]:
    """Make a token: the secret, which nobody keeps, and its entry for the file.

    Raises:
        ConfigError: the name or a scope cannot be used.
    """
    secret = _PREFIX + secrets.token_urlsafe(32)
    sha256 = hashlib.sha256(secret.encode()).hexdigest()
    fields = {"name": name, "sha256": sha256, "scopes": list(scopes)}
    try:
        return secret, Token.model_validate(fields)
    except ValidationError as error:
        raise ConfigError(f"This token cannot be made: {_explain(error)}.") from error


def read_tokens(path: Path) -> Tokens:
    """Read the file.

    Raises:
        ConfigError: it cannot be read or used; the sentence repeats nothing of its content.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"The tokens file {path} cannot be read: {error.strerror}.") from error
    return parse_tokens(data, path=path)


def parse_tokens(data: bytes, *, path: Path) -> Tokens:
    """The content of the file `path`, which stands in what is said about it.

    Raises:
        ConfigError: as `read_tokens`.
    """
    try:
        entries = _entries.validate_python(_load(data, path))
    except ValidationError as error:
        raise ConfigError(
            f"The tokens file {path} cannot be used{_place(error, data)}: {_explain(error)}."
        ) from error
    if not entries:
        raise ConfigError(
            f"The tokens file {path} holds no token; `streamer token new NAME --file {path}` makes"
            " one."
        )
    for field in ("name", "sha256"):
        if len({getattr(entry, field) for entry in entries}) < len(entries):
            raise ConfigError(f"The tokens file {path} has the same {field} twice.")
    return Tokens(entries)


def _load(data: bytes, path: Path) -> object:
    if len(data) > _MAX_BYTES:
        raise ConfigError(f"The tokens file {path} has more than {_MAX_BYTES} bytes.")
    try:
        return yaml.safe_load(data) or []
    except (yaml.YAMLError, ValueError) as error:  # a day that is none is a ValueError
        mark = getattr(error, "problem_mark", None)
        line = f" (line {mark.line + 1})" if mark is not None else ""
        raise ConfigError(f"The tokens file {path} is neither YAML nor JSON{line}.") from error


def _place(error: ValidationError, data: bytes) -> str:
    """Where in the file the entry begins that is meant; empty where that cannot be told."""
    entry = next(iter(error.errors(include_url=False, include_input=False)[0]["loc"]), None)
    node = yaml.compose(data, Loader=yaml.SafeLoader)
    if isinstance(entry, int) and isinstance(node, yaml.SequenceNode) and entry < len(node.value):
        return f" (line {node.value[entry].start_mark.line + 1})"
    return ""


def _explain(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])


class TokenFile:
    """The tokens of a file as it is now. A file that turns bad changes nothing but the log.

    Args:
        path: of the file.
        clock: nanoseconds, monotonic; the file is looked at no more than once a second.

    Raises:
        ConfigError: the file cannot be used from the start.
    """

    def __init__(self, path: Path, *, clock: Callable[[], int] = monotonic_ns) -> None:
        self._path = path
        self._clock = clock
        self._stamp = _stamp(path)
        self._tokens = read_tokens(path)
        self._looked_ns = clock()

    def current(self) -> Tokens:
        """Reads the file if it changed; blocks for that long, which is short."""
        now_ns = self._clock()
        if now_ns - self._looked_ns >= _LOOK_NS:
            self._looked_ns = now_ns
            stamp = _stamp(self._path)
            if stamp != self._stamp:
                self._stamp = stamp
                self._read_again()
        return self._tokens

    def _read_again(self) -> None:
        try:
            self._tokens = read_tokens(self._path)
        except ConfigError as error:
            log.warning("tokens file refused, the old tokens stay", extra={"why": error.message})
        else:
            log.info("tokens file read again", extra={"tokens": len(self._tokens)})


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Differs when the file was written or replaced; None when it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_size)
