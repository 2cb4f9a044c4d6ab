"""The tools that judge the tree, as processes beside the tests."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

__all__ = ["TOOLS", "Outcome", "running_tools"]

_ROOT = Path(__file__).parents[1]
TOOLS = {
    "mypy": [sys.executable, "-m", "mypy"],
    "pip check": [sys.executable, "-m", "pip", "check"],
    # it ships no runnable module
    "import-linter": [str(Path(sys.executable).with_name("lint-imports"))],
    "ruff check": [sys.executable, "-m", "ruff", "check", "."],
    "ruff format": [sys.executable, "-m", "ruff", "format", "--check", "."],
}
Outcome = Callable[[str], tuple[int, str]]
"""Waits for a tool; its exit code and all it said."""


@contextmanager
def running_tools(names: Iterable[str]) -> Iterator[Outcome]:
    """All of them at once, below the root; those that still run at the end are killed."""
    with ExitStack() as stack:
        said = {name: stack.enter_context(tempfile.TemporaryFile("w+")) for name in names}
        processes = {
            name: subprocess.Popen(TOOLS[name], cwd=_ROOT, stdout=file, stderr=file)
            for name, file in said.items()
        }

        def outcome(name: str) -> tuple[int, str]:
            code = processes[name].wait()
            said[name].seek(0)
            return code, said[name].read()

        try:
            yield outcome
        finally:
            for process in processes.values():
                process.kill()
                process.wait()
