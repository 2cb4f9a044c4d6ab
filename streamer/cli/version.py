"""`streamer version`."""

from __future__ import annotations

import json
import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from typing import Annotated

import typer

from streamer import __version__

__all__ = ["version"]

_PACKAGES = ("torch", "ray", "av", "numpy", "fastapi", "safetensors", "transformers")


def version(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Show the versions of streamer, Python and the packages it stands on.

    Example: streamer version --json
    """
    versions = {"streamer": __version__, "python": platform.python_version()}
    versions |= {name: _version(name) for name in _PACKAGES}
    if as_json:
        print(json.dumps(versions))
        return
    for name, number in versions.items():
        print(f"{name:14} {number}")


def _version(package: str) -> str:
    try:
        return version_of(package)
    except PackageNotFoundError:
        return "not installed"
