"""Putting a new entry into the tokens file, or leaving the file as it was."""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from streamer.errors import ConfigError
from streamer.gateway.tokens import Token, parse_tokens

__all__ = ["add_token", "token_line"]

_MODE = 0o600


def token_line(token: Token) -> str:
    """The entry as a line of the file."""
    return f"- {json.dumps(token.model_dump(mode='json'))}"


def add_token(path: Path, token: Token) -> None:
    """Append it. A file that is not there is made, readable for its owner alone; one that is there
    keeps owner and mode. A service that reads meanwhile sees the old file or the new one.

    Raises:
        ConfigError: the file cannot be read or written, could not be used before, or could not be
            used afterwards: the name is taken, or it is a JSON list.
    """
    path = path.expanduser().resolve()
    try:
        with _locked(path.parent):
            old = path.read_bytes() if path.exists() else b""
            if old.strip() and parse_tokens(old, path=path).named(token.name) is not None:
                raise ConfigError(
                    f"{path} already holds a token named {token.name!r}. Choose another name, or"
                    " take that line out first."
                )
            ending = b"" if not old or old.endswith(b"\n") else b"\n"
            new = old + ending + token_line(token).encode() + b"\n"
            try:
                parse_tokens(new, path=path)
            except ConfigError as error:
                raise ConfigError(
                    f"{path} is no list with an entry a line (JSON?); add this one by hand."
                ) from error
            _replace(path, new)
    except OSError as error:
        raise ConfigError(
            f"The tokens file {path} cannot be written: {error.strerror}. Nothing was changed."
        ) from error


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Two that append at once do so one after the other."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _replace(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            mode = _MODE
            if path.exists():
                before = path.stat()
                mode = before.st_mode & 0o777
                with suppress(PermissionError):
                    os.fchown(file.fileno(), before.st_uid, before.st_gid)
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
