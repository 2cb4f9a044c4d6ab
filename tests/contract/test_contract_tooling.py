"""The tools that hold the rules run in the suite, so that no rule lives only in a document."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.contract

ROOT = Path(__file__).parents[2]
TOOLS = {
    "ruff check": ["-m", "ruff", "check", "."],
    "ruff format": ["-m", "ruff", "format", "--check", "."],
    "import-linter": ["-m", "importlinter.cli", "lint-imports"],
    "mypy": ["-m", "mypy"],
    "pip check": ["-m", "pip", "check"],
}


@pytest.mark.parametrize("tool", TOOLS)
def test_tool_is_content(tool: str) -> None:
    command = [sys.executable, *TOOLS[tool]]
    if tool == "import-linter":  # it ships no runnable module
        command = [str(Path(sys.executable).with_name("lint-imports"))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{tool}:\n{done.stdout}\n{done.stderr}"
