"""A training that can be gone on with: everything in one file, written whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import torch

from streamer.errors import CheckpointError, ConfigError

__all__ = ["read_checkpoint", "write_checkpoint"]


def write_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write, then rename: what was there stays until the new one is complete.

    Raises:
        CheckpointError: no room, or the folder cannot be written; the old file is untouched.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except (OSError, RuntimeError) as error:
        partial.unlink(missing_ok=True)
        raise _explained(error, path) from error


def read_checkpoint(path: Path, *, config: dict[str, Any]) -> dict[str, Any]:
    """The state in a file, if it belongs to this configuration.

    Args:
        config: of the training that wants to go on, as it was given to `write_checkpoint` in
            ``state["config"]``.

    Raises:
        CheckpointError: no such file, or damaged.
        ConfigError: it is of another configuration; the sentence says what differs.
    """
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise CheckpointError(f"There is no checkpoint {path}.") from error
    except Exception as error:  # torch raises many kinds for damaged files
        raise CheckpointError(f"{path} cannot be read as a checkpoint: {error}") from error
    if not isinstance(state, dict) or "config" not in state:
        raise CheckpointError(f"{path} is no checkpoint of a training.")
    differing = list(_differences(state["config"], config))
    if differing:
        raise ConfigError(
            f"{path} is of a training with other settings: {'; '.join(differing)}. Give another "
            "folder, or the old settings."
        )
    return state


def _differences(before: Any, now: Any, path: str = "") -> Any:
    if isinstance(before, dict) and isinstance(now, dict):
        for name in sorted(before.keys() | now.keys()):
            yield from _differences(
                before.get(name), now.get(name), f"{path}.{name}" if path else name
            )
    elif _plain(before) != _plain(now):
        yield f"{path} was {_plain(before)}, is {_plain(now)}"


def _plain(value: Any) -> Any:
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _explained(error: Exception, path: Path) -> CheckpointError:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
            return CheckpointError(f"No room to write {path}; what was there before is untouched.")
        cause = cause.__context__
    return CheckpointError(f"Cannot write {path}: {error}")
