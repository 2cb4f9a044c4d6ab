"""The commit in `/version`, from a checkout's own files."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from streamer.build import installed_commit

pytestmark = pytest.mark.unit

ONE, TWO = "1" * 40, "2" * 40


def _checkout(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / ".git" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


def test_a_branch_a_packed_branch_and_none(tmp_path: Path) -> None:
    assert installed_commit(tmp_path) == ""
    assert installed_commit(_checkout(tmp_path, HEAD=TWO)) == TWO
    _checkout(tmp_path, HEAD="ref: refs/heads/main")
    assert installed_commit(tmp_path) == ""
    (tmp_path / ".git" / "packed-refs").write_text(f"# pack-refs\n{ONE} refs/heads/main\n")
    assert installed_commit(tmp_path) == ONE
    assert installed_commit(_checkout(tmp_path, refs__heads__main=TWO)) == TWO


@pytest.mark.parametrize("head", ["ref: ../../secret", "ref: refs/../../x", "nonsense", ""])
def test_nothing_is_made_up(tmp_path: Path, head: str) -> None:
    assert installed_commit(_checkout(tmp_path, HEAD=head)) == ""


def test_it_is_what_git_says() -> None:
    root = Path(__file__).parents[2]
    said = subprocess.run(
        ["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    assert installed_commit() == said.stdout.strip()
