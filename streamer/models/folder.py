"""Folders in the Hugging Face layout: `config.json` and `model.safetensors`, whole or sharded."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from streamer.errors import CheckpointError, NotFound
from streamer.models.keys import Shapes

__all__ = ["TensorFolder", "read_json", "write_folder"]

_WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"


class TensorFolder:
    """The tensors of a folder, read one by one; a context manager that holds its files open.

    Raises:
        NotFound: no such folder.
        CheckpointError: no weights in it, or damaged ones; the message names the file.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise NotFound(f"There is no model folder {folder}.")
        self._folder = folder
        self._stack = ExitStack()
        self._where: dict[str, Any] = {}
        self.shapes: Shapes = {}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for file in _weight_files(self._folder):
                with _translated(file):
                    handle = stack.enter_context(safe_open(file, framework="pt"))
                    for key in handle.keys():  # noqa: SIM118 (a safetensors handle is no mapping)
                        self._where[key] = handle
                        self.shapes[key] = tuple(handle.get_slice(key).get_shape())
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def get(self, key: str) -> Tensor:
        with _translated(self._folder):
            tensor: Tensor = self._where[key].get_tensor(key)
        return tensor


def _weight_files(folder: Path) -> list[Path]:
    if (folder / _INDEX).is_file():
        return _shards(folder)
    if (folder / _WEIGHTS).is_file():
        return [folder / _WEIGHTS]
    found = ", ".join(sorted(p.name for p in folder.iterdir())[:8]) or "nothing"
    raise CheckpointError(
        f"{folder} holds no {_WEIGHTS} (found: {found}). Files of the original release are "
        "converted with `streamer models convert`."
    )


def _shards(folder: Path) -> list[Path]:
    weight_map = read_json(folder / _INDEX).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError(f"{folder / _INDEX} has no weight_map.")
    names = sorted({str(name) for name in weight_map.values()})
    bad = [name for name in names if Path(name).name != name or not (folder / name).is_file()]
    if bad:
        raise CheckpointError(f"{folder} lacks shards that its index names: {', '.join(bad)}.")
    return [folder / name for name in names]


@contextmanager
def _translated(file: Path) -> Iterator[None]:
    try:
        yield
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"Cannot read {file}: {error}") from error


def read_json(file: Path) -> dict[str, Any]:
    """A JSON object from a file.

    Raises:
        CheckpointError: no such file, or no JSON object in it.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CheckpointError(f"Cannot read {file}: {error.strerror}.") from error
    except ValueError as error:
        raise CheckpointError(f"{file} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise CheckpointError(f"{file} must hold a JSON object.")
    return content


def write_folder(
    folder: Path,
    *,
    config: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    more: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Write `model.safetensors`, further JSON files by name, and last `config.json`.

    Each file appears whole or not at all; a folder without `config.json` is unfinished. What was
    there before is replaced, the index of a sharded model included.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for stale in ("config.json", _INDEX):
        (folder / stale).unlink(missing_ok=True)
    weights = folder / _WEIGHTS
    partial = weights.with_name(weights.name + ".partial")
    held = {key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}
    save_file(held, partial, metadata={"format": "pt"})
    os.replace(partial, weights)
    for name, content in {**(more or {}), "config.json": config}.items():
        partial = folder / f"{name}.partial"
        partial.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        os.replace(partial, folder / name)
