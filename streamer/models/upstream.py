"""Files of the original release (`torch.save`): pre-trained models and probes.

Loaded with `weights_only=True`, so a file cannot run code, and memory-mapped, so that of a file
with optimiser states only the tensors we use are read.
"""

from __future__ import annotations

import logging
import pickle
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import torch
from torch import Tensor

from streamer.errors import CheckpointError, ConfigError, NotFound
from streamer.models.fingerprint import hash_tensors

__all__ = ["ENCODER_ENTRIES", "State", "UpstreamFile", "choose_encoder", "read_upstream"]

ENCODER_ENTRIES: Final = ("target_encoder", "ema_encoder", "encoder")
"""In order of preference: released probes were trained on the target encoder."""

_PREFIXES: Final = ("module.", "backbone.")
_STALE: Final = frozenset({"pos_embed", "predictor_pos_embed"})
"""Tables that old files carry and that models with rotary positions never read."""

_log = logging.getLogger(__name__)

State = dict[str, Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamFile:
    """What we use of a file, under clean names."""

    path: Path
    kind: Literal["model", "action_conditioned", "probe"]
    entries: Mapping[str, State]
    """Encoders and `predictor` by name; for a probe file `classifiers.0`, ..."""


def read_upstream(path: Path) -> UpstreamFile:
    """Read a `.pt` file.

    Raises:
        NotFound: no such file.
        CheckpointError: damaged, with code inside, or not a file of the release.
    """
    if not path.is_file():
        raise NotFound(f"There is no file {path}.")
    with _translated(path):
        content = torch.load(
            path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path)
        )
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} holds a {type(content).__name__}, not a dictionary.")
    entries = {name: _clean(state, path, name) for name, state in _states(content).items()}
    if not entries:
        raise CheckpointError(
            f"{path} holds none of {', '.join(ENCODER_ENTRIES)}, predictor, classifiers "
            f"(found: {', '.join(map(str, content)) or 'nothing'})."
        )
    return UpstreamFile(path=path, kind=_kind(entries), entries=entries)


def choose_encoder(file: UpstreamFile, entry: str | None = None) -> tuple[str, State]:
    """The encoder to use, and its name in the file; logged with its hash.

    Raises:
        ConfigError: `entry` is no name of an encoder.
        CheckpointError: the file has no such entry, or no encoder.
    """
    if entry is not None and entry not in ENCODER_ENTRIES:
        raise ConfigError(f"{entry!r} is not one of {', '.join(ENCODER_ENTRIES)}.")
    present = [name for name in ENCODER_ENTRIES if name in file.entries]
    wanted = present[:1] if entry is None else [name for name in present if name == entry]
    if not wanted:
        have = ", ".join(present) or "no encoder"
        raise CheckpointError(f"{file.path} has no {entry or 'encoder'}; it has {have}.")
    state = file.entries[wanted[0]]
    _log.info(
        "upstream encoder chosen",
        extra={"file": str(file.path), "entry": wanted[0], "sha256": hash_tensors(state)},
    )
    return wanted[0], state


def _states(content: Mapping[Any, Any]) -> dict[str, Any]:
    names = [name for name in (*ENCODER_ENTRIES, "predictor") if content.get(name) is not None]
    states = {name: content[name] for name in names}
    classifiers = content.get("classifiers")
    if isinstance(classifiers, list):
        states |= {f"classifiers.{i}": state for i, state in enumerate(classifiers)}
    return states


def _kind(entries: Mapping[str, State]) -> Literal["model", "action_conditioned", "probe"]:
    if "classifiers.0" in entries:
        return "probe"
    acts = "action_encoder.weight" in entries.get("predictor", {})
    return "action_conditioned" if acts else "model"


def _clean(state: Any, path: Path, name: str) -> State:
    """Names without the prefixes of training wrappers, wherever these stand; no stale tables."""
    if not isinstance(state, dict) or not all(isinstance(t, Tensor) for t in state.values()):
        raise CheckpointError(f"{path}: entry {name} is not a dictionary of tensors.")
    out: State = {}
    for key, tensor in state.items():
        short = str(key)
        for prefix in _PREFIXES:
            short = short.replace(prefix, "")
        if short in out:
            raise CheckpointError(f"{path}: entry {name} holds {short} twice, the second as {key}.")
        if short not in _STALE:
            out[short] = tensor
    return out


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except pickle.UnpicklingError as error:
        raise CheckpointError(
            f"{path} is not a plain file of tensors: it is damaged, or it holds objects that "
            "loading would have to run code for, which we refuse."
        ) from error
    except (RuntimeError, EOFError, OSError, ValueError, KeyError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else "unexpected end"
        raise CheckpointError(f"Cannot read {path}: damaged or cut short ({reason}).") from error
