"""The container: encoder, masked predictor, and the classifier where a checkpoint has one."""

from __future__ import annotations

import difflib
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from streamer.errors import CheckpointError, ConfigError, NotFound
from streamer.models.checkpoint import assign, check_dtype, check_shapes, on_meta, shapes_of
from streamer.models.config import CLASSIFICATION, PRESETS, VJepa2Config
from streamer.models.encoder import Encoder
from streamer.models.fingerprint import fingerprint
from streamer.models.folder import TensorFolder, read_json, write_folder
from streamer.models.hub import fetch, is_hub_id
from streamer.models.initialise import initialise
from streamer.models.keys import hf_shapes, key_pairs, to_hf, to_ours
from streamer.models.pooler import AttentiveClassifier
from streamer.models.predictor import Predictor
from streamer.models.probe_config import ProbeConfig
from streamer.models.upstream import UpstreamFile, choose_encoder

__all__ = ["VJepa2", "load_model"]


class VJepa2(nn.Module):
    """A V-JEPA 2 checkpoint in memory, in eval mode. Use the constructors `from_*`."""

    def __init__(self, config: VJepa2Config, *, name: str = "") -> None:
        super().__init__()
        self.config = config
        self.name = name
        self.encoder = Encoder(config)
        self.predictor = Predictor(config)
        self.classifier: AttentiveClassifier | None = (
            AttentiveClassifier(ProbeConfig.of_model(config)) if config.has_classifier else None
        )
        self._fingerprint = ""

    @property
    def trained(self) -> bool:
        """False when the weights are random."""
        return self.config.trained

    @property
    def fingerprint(self) -> str:
        """12 hex digits of encoder weights (as held, dtype included), crop and tubelet.

        Made once, on first use; a model whose weights change afterwards keeps its old one until
        it is saved and loaded again.
        """
        if not self._fingerprint:
            self._fingerprint = fingerprint(
                self.encoder.state_dict(),
                crop=self.config.crop_size,
                tubelet=self.config.tubelet_size,
            )
        return self._fingerprint

    @classmethod
    def from_preset(
        cls,
        name: str,
        *,
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
        device: str | torch.device = "cpu",
    ) -> VJepa2:
        """A model of known sizes with random weights; `trained` is false.

        Raises:
            NotFound: no such preset.
            ConfigError: `dtype` cannot hold weights.
        """
        if name not in PRESETS:
            raise NotFound(f"There is no preset {name!r}; there are {', '.join(PRESETS)}.")
        check_dtype(dtype)
        model = on_meta(lambda: cls(replace(PRESETS[name], trained=False), name=name))
        model.to_empty(device="cpu")
        initialise(model, seed=seed, std=model.config.initializer_range)
        return model.to(device=device, dtype=dtype).eval()

    @classmethod
    def from_pretrained(
        cls,
        path_or_hub_id: str | Path,
        *,
        dtype: torch.dtype = torch.float32,
        device: str | torch.device = "cpu",
        revision: str | None = None,
    ) -> VJepa2:
        """Load a folder in the Hugging Face layout, or such a model from the hub.

        Args:
            path_or_hub_id: folder with `config.json` and `model.safetensors` (whole or sharded),
                or `owner/name` on the hub.
            dtype: weights are held in it whatever the file holds.
            revision: branch, tag or commit on the hub.

        Raises:
            NotFound: no such folder or hub model.
            ConfigError: a config that we do not understand, or a dtype that holds no weights.
            CheckpointError: damaged files, or tensors that do not fit the config.
        """
        name = str(path_or_hub_id)
        folder = Path(name)
        if not folder.exists() and is_hub_id(name):
            folder = fetch(name, revision=revision)
        else:
            name = folder.resolve().name
        with TensorFolder(folder) as source:
            config = _read_config(folder, source)
            model = on_meta(lambda: cls(config, name=name))
            shapes = shapes_of(model.state_dict())
            pairs = key_pairs(shapes, prefixed=config.has_classifier)
            check_shapes(source.shapes, hf_shapes(pairs, shapes), what=str(folder))
            tensors = to_ours(pairs, source.get)
        return assign(model, tensors, what=str(folder), dtype=dtype, device=device)

    @classmethod
    def from_upstream(
        cls,
        file: UpstreamFile,
        *,
        config: VJepa2Config,
        entry: str | None = None,
        dtype: torch.dtype = torch.float32,
        device: str | torch.device = "cpu",
    ) -> VJepa2:
        """Encoder and predictor of an upstream file.

        Args:
            file: from `streamer.models.upstream.read_upstream`.
            config: its sizes, since the file stores none.
            entry: which encoder; None takes the first of target_encoder, ema_encoder, encoder.

        Raises:
            CheckpointError: not a model file, no such entry, or tensors that do not fit.
        """
        if file.kind != "model" or "predictor" not in file.entries:
            raise CheckpointError(
                f"{file.path} holds {', '.join(file.entries)} "
                f"({file.kind.replace('_', '-')}); an encoder and a masked predictor are needed."
            )
        _, encoder = choose_encoder(file, entry)
        parts = {"encoder": encoder, "predictor": file.entries["predictor"]}
        tensors = {f"{p}.{key}": t for p, state in parts.items() for key, t in state.items()}
        model = on_meta(lambda: cls(config, name=file.path.stem))
        return assign(model, tensors, what=str(file.path), dtype=dtype, device=device)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write `config.json`, `model.safetensors` and `video_preprocessor_config.json`.

        `model_type` is `vjepa2` when transformers would compute the same numbers from it, else
        `streamer_vjepa2`, which it refuses. Both load again with `from_pretrained`; random weights
        stay marked as not trained.
        """
        model_type = "vjepa2" if self.config.is_hf_expressible else "streamer_vjepa2"
        tensors = self.state_dict()
        pairs = key_pairs(tensors, prefixed=self.config.has_classifier)
        dtype = str(next(self.parameters()).dtype).removeprefix("torch.")
        write_folder(
            Path(folder),
            config=replace(self.config, model_type=model_type).to_dict() | {"dtype": dtype},
            tensors=to_hf(pairs, tensors),
            more={"video_preprocessor_config.json": _preprocessor(self.config.crop_size)},
        )


def load_model(
    name_or_path: str,
    *,
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
    revision: str | None = None,
    seed: int = 0,
) -> VJepa2:
    """A preset by name (random weights from `seed`), else a folder, else a hub id.

    Raises:
        NotFound: none of these.
        ConfigError: an upstream `.pt` file, which is to be converted first; or as
            `VJepa2.from_pretrained`.
        CheckpointError: as `VJepa2.from_pretrained`.
    """
    if name_or_path in PRESETS:
        return VJepa2.from_preset(name_or_path, seed=seed, dtype=dtype, device=device)
    if Path(name_or_path).is_file():
        raise ConfigError(
            f"{name_or_path} is a file; convert it once with "
            f"`streamer models convert {name_or_path} FOLDER` and give the folder."
        )
    if not Path(name_or_path).is_dir() and not is_hub_id(name_or_path):
        near = difflib.get_close_matches(name_or_path, PRESETS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise NotFound(
            f"{name_or_path!r} is no preset ({', '.join(PRESETS)}), no folder and no hub id.{hint}"
        )
    return VJepa2.from_pretrained(name_or_path, dtype=dtype, device=device, revision=revision)


def _read_config(folder: Path, source: TensorFolder) -> VJepa2Config:
    config = VJepa2Config.from_dict(read_json(folder / "config.json"))
    if not config.architectures and "pooler.query_tokens" in source.shapes:
        return replace(config, architectures=(CLASSIFICATION,))
    return config


def _preprocessor(crop: int) -> dict[str, Any]:
    """Source: transformers 5.24.0 VJEPA2VideoProcessor, its defaults at 256 pixels."""
    return {
        "crop_size": {"height": crop, "width": crop},
        "do_center_crop": True,
        "do_normalize": True,
        "do_rescale": True,
        "do_resize": True,
        "image_mean": [0.485, 0.456, 0.406],
        "image_std": [0.229, 0.224, 0.225],
        "resample": 2,
        "rescale_factor": 1 / 255,
        "size": {"shortest_edge": int(crop * 256 / 224)},
        "video_processor_type": "VJEPA2VideoProcessor",
    }
