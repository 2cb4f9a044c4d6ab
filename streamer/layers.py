"""Layers of settings: one YAML file and the environment as nested mappings, merged with checks.

pydantic-settings would read both, but neither decodes lists inside dataclasses nor notices a
variable whose name fits no setting; a typing error must not go unnoticed.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from streamer.errors import ConfigError

__all__ = ["leaves", "merge", "read_environment", "read_file"]

_PREFIX = "STREAMER_"
# Least likeness of a name that is worth suggesting, as in difflib.
_LIKE = 0.6
# Read by others: the settings file itself, the command line's client, the tests.
_NOT_SETTINGS = frozenset({"CONFIG", "SERVER", "URL", "TOKEN", "PARITY_DIR"})
# Kubernetes tells every container about every service; one called streamer-... looks like ours.
_SERVICE_LINK = re.compile(
    r"(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT\w*|PORT(?:_\d+_(?:TCP|UDP)\w*)?)"
)


def merge(tree: Mapping[str, Any], layer: Mapping[str, Any], *, origin: str) -> dict[str, Any]:
    """A copy of `tree` with the values of `layer` in it.

    Args:
        tree: nested mapping with every valid name.
        layer: nested mapping with some of them.
        origin: where `layer` comes from, for the sentence.

    Raises:
        ConfigError: a name that `tree` does not have.
    """
    return _merge(tree, layer, origin=origin, path="", names=sorted(leaves(tree)))


def _merge(
    tree: Mapping[str, Any], layer: Mapping[str, Any], *, origin: str, path: str, names: list[str]
) -> dict[str, Any]:
    merged = dict(tree)
    for name, value in layer.items():
        full = f"{path}{name}"
        if name not in tree:
            raise ConfigError(_unknown(full, origin=origin, siblings=tree, path=path, names=names))
        if isinstance(tree[name], Mapping):
            if not isinstance(value, Mapping):
                raise ConfigError(
                    f"{full} in {origin} is a section and not a value; it holds"
                    f" {', '.join(tree[name])}."
                )
            value = _merge(tree[name], value, origin=origin, path=f"{full}.", names=names)
        merged[name] = value
    return merged


def _unknown(
    full: str, *, origin: str, siblings: Mapping[str, Any], path: str, names: list[str]
) -> str:
    near = _nearest(full, siblings=[f"{path}{name}" for name in siblings], names=names)
    hint = f"did you mean {near}?" if near else f"there are {', '.join(siblings)}."
    return f"Unknown setting {full} in {origin}; {hint}"


def _nearest(full: str, *, siblings: Sequence[str], names: Sequence[str]) -> str | None:
    """The name whose last part is most like that of `full`: people know a setting by its own
    name and err in its section. Of two alike the one of the same section."""
    wanted = _last(full)
    likeness = {name: _likeness(wanted, _last(name)) for name in [*siblings, *names]}
    best = max(likeness, key=lambda name: (likeness[name], name in siblings))
    return best if likeness[best] >= _LIKE else None


def _likeness(wrong: str, right: str) -> float:
    if sorted(wrong) == sorted(right):
        return 1.0  # letters swapped
    return difflib.SequenceMatcher(None, wrong, right).ratio()


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def leaves(tree: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Full names of all values, like `server.port`."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}"


def read_file(path: Path) -> dict[str, Any]:
    """One YAML mapping.

    Raises:
        ConfigError: no such file, no YAML, no mapping.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The settings file {path} cannot be read: {error}.") from error
    except (yaml.YAMLError, ValueError) as error:  # a day that is none is a ValueError
        raise ConfigError(f"The settings file {path} is no YAML: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        raise ConfigError(f"The settings file {path} must hold names and values, like model: ...")
    return content


def read_environment(environ: Mapping[str, str], *, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Variables ``STREAMER_SECTION__NAME`` as a nested mapping.

    Lists are written with commas or as JSON. Everything else stays text for the settings to read.

    Args:
        defaults: nested mapping with every valid name; tells lists from text.

    Raises:
        ConfigError: no list where one is begun, or a section that is also set as a value.
    """
    layer: dict[str, Any] = {}
    for variable, text in environ.items():
        name = variable.removeprefix(_PREFIX)
        if name == variable or not _is_setting(name):
            continue
        *sections, leaf = name.lower().split("__")
        node, known = layer, defaults
        for section in sections:
            node = node.setdefault(section, {})
            if not isinstance(node, dict):
                raise ConfigError(f"{variable} sets a part of {section}, which is set as a whole.")
            known = known.get(section, {}) if isinstance(known, Mapping) else {}
        default = known.get(leaf) if isinstance(known, Mapping) else None
        node[leaf] = _value(text, default=default, variable=variable)
    return layer


def _is_setting(name: str) -> bool:
    if name in _NOT_SETTINGS:
        return False
    return "__" in name or not _SERVICE_LINK.fullmatch(name)


def _value(text: str, *, default: object, variable: str) -> Any:
    if text.lstrip().startswith(("[", "{")):
        try:
            return yaml.safe_load(text)
        except (yaml.YAMLError, ValueError) as error:
            raise ConfigError(f"{variable} is no list or mapping: {error}") from error
    if isinstance(default, tuple | list):
        return [part.strip() for part in text.split(",") if part.strip()]
    return None if text == "null" else text
