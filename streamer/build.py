"""Which commit this program was made from, as far as its installation knows."""

from __future__ import annotations

import json
import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

__all__ = ["installed_commit"]

_COMMIT = re.compile(r"[0-9a-f]{40,64}")


def installed_commit(root: Path | None = None) -> str:
    """The commit that pip was given, or that of the checkout this runs in; empty when neither is
    known. What was changed in a checkout since its commit does not show. Reads files.

    Args:
        root: the checkout; None: where this package lies.
    """
    return (_of_pip() if root is None else "") or _of_checkout(root or Path(__file__).parents[1])


def _of_pip() -> str:
    """PEP 610: `pip install git+https://...` writes down what it took."""
    try:
        text = distribution("streamer").read_text("direct_url.json")
    except PackageNotFoundError:
        return ""
    return _checked(str((json.loads(text or "{}").get("vcs_info") or {}).get("commit_id", "")))


def _of_checkout(root: Path) -> str:
    folder = root / ".git"
    head = _read(folder / "HEAD")
    if not head.startswith("ref: "):
        return _checked(head)
    name = head.removeprefix("ref: ")
    if not re.fullmatch(r"refs/[\w./-]+", name) or ".." in name:
        return ""
    if loose := _checked(_read(folder / name)):
        return loose
    for line in _read(folder / "packed-refs").splitlines():
        commit, _, packed = line.partition(" ")
        if packed == name:
            return _checked(commit)
    return ""


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _checked(text: str) -> str:
    return text if _COMMIT.fullmatch(text) else ""
