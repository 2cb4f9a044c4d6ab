"""Probes as files: ours (a folder) and upstream's (`classifiers` in a `.pt`)."""

from __future__ import annotations

from pathlib import Path

import torch

from streamer.errors import CheckpointError
from streamer.models.checkpoint import assign, on_meta
from streamer.models.folder import TensorFolder, read_json, write_folder
from streamer.models.pooler import ActionProbe, AttentiveClassifier, build_probe
from streamer.models.probe_config import ProbeConfig
from streamer.models.upstream import State, UpstreamFile

__all__ = ["load_probe", "probe_from_upstream", "probe_state", "read_probe_config", "save_probe"]

Probe = AttentiveClassifier | ActionProbe


def load_probe(
    folder: str | Path,
    *,
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
) -> Probe:
    """Read a probe folder.

    Raises:
        NotFound: no such folder.
        ConfigError: a config that is not a probe's.
        CheckpointError: damaged files, or tensors that do not fit the config.
    """
    config = read_probe_config(Path(folder))
    probe = on_meta(lambda: build_probe(config))
    with TensorFolder(Path(folder)) as source:
        tensors = {key: source.get(key) for key in source.shapes}
    return assign(probe, tensors, what=str(folder), dtype=dtype, device=device)


def read_probe_config(folder: Path) -> ProbeConfig:
    return ProbeConfig.from_dict(read_json(folder / "config.json"))


def save_probe(probe: Probe, folder: str | Path, *, config: ProbeConfig) -> None:
    """Write `config.json` and `model.safetensors`, names as upstream's."""
    write_folder(Path(folder), config=config.to_dict(), tensors=probe.state_dict())


def probe_state(file: UpstreamFile, *, classifier: int = 0) -> State:
    """Tensors of one of the classifiers in an upstream probe file.

    Raises:
        CheckpointError: not a probe file, or fewer classifiers.
    """
    state = file.entries.get(f"classifiers.{classifier}")
    if state is None:
        raise CheckpointError(
            f"{file.path} has no classifier {classifier}; it holds {', '.join(file.entries)}."
        )
    return state


def probe_from_upstream(
    file: UpstreamFile,
    *,
    config: ProbeConfig,
    classifier: int = 0,
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
) -> Probe:
    """One of the classifiers in an upstream probe file, as a module.

    Raises:
        CheckpointError: not a probe file, fewer classifiers, or tensors that do not fit `config`.
    """
    state = probe_state(file, classifier=classifier)
    probe = on_meta(lambda: build_probe(config))
    return assign(probe, state, what=str(file.path), dtype=dtype, device=device)
