"""A training as a YAML file: sizes of the model and how it is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from streamer.errors import ConfigError
from streamer.layers import merge, read_file
from streamer.models.config import VJepa2Config
from streamer.training.config import BlockMaskConfig, PretrainConfig

__all__ = ["Recipe", "read_recipe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What `streamer train pretrain --config` reads."""

    model: VJepa2Config = field(default_factory=VJepa2Config)
    training: PretrainConfig = field(default_factory=PretrainConfig)


def read_recipe(path: Path, *, options: Mapping[str, Any] | None = None) -> Recipe:
    """Two sections, `model` (names of `config.json`) and `training` (`PretrainConfig`).

    Args:
        options: values of the command line for `training`, over those of the file.

    Raises:
        ConfigError: the file cannot be read, an unknown name, with the nearest valid one, or a
            value that cannot work.
    """
    content = read_file(path)
    unknown = sorted(set(content) - {"model", "training"})
    if unknown:
        raise ConfigError(
            f"{path} has the section {unknown[0]!r}; a recipe has `model` and `training`."
        )
    tree: dict[str, Any] = asdict(PretrainConfig())
    tree = merge(tree, content.get("training") or {}, origin=str(path))
    tree = merge(tree, options or {}, origin="the command line")
    tree["tasks"]["tubes"] = [_tube(each, path) for each in tree["tasks"]["tubes"]]
    try:
        training = TypeAdapter(PretrainConfig).validate_python(tree)
    except ValidationError as error:
        facts = [
            f"training.{'.'.join(map(str, each['loc']))}: {each['msg']}"
            for each in error.errors(include_url=False)
        ]
        raise ConfigError(f"{path} cannot work. {'; '.join(facts)}.") from error
    return Recipe(model=VJepa2Config.from_dict(content.get("model") or {}), training=training)


def _tube(given: Any, path: Path) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise ConfigError(
            f"training.tasks.tubes in {path} is a list of sections, not of {given!r}."
        )
    return merge(asdict(BlockMaskConfig()), given, origin=str(path))
