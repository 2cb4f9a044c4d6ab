"""`__all__` of every module is complete and true (ruff sorts it); stage packages are empty."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

pytestmark = pytest.mark.contract

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    path
    for top in ("streamer", "deployments")
    for path in (ROOT / top).rglob("*.py")
    if path.name != "__init__.py"
)


def _defined(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Assign():
                names |= {t.id for t in node.targets if isinstance(t, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_all_lists_what_is_public(path: Path) -> None:
    tree = ast.parse(path.read_text())
    listed = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)
    ]
    assert listed, "a module says what is public in __all__"
    assert set(listed[0]) <= _defined(tree)
    classes = {n.name for n in tree.body if isinstance(n, ast.ClassDef)}
    assert {name for name in classes if not name.startswith("_")} <= set(listed[0])


def test_stage_packages_are_empty() -> None:
    full = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "streamer").rglob("__init__.py")
        if path.parent.name != "streamer" and path.read_text().strip()
    ]
    assert full == []


def test_no_module_outgrows_a_screenful_of_screens() -> None:
    long = {
        str(p.relative_to(ROOT)): n for p in MODULES if (n := len(p.read_text().split("\n"))) > 400
    }
    assert long == {}


def test_only_the_clock_calls_time() -> None:
    callers = [
        str(path.relative_to(ROOT))
        for path in MODULES
        if path.name != "clock.py"
        and any(
            isinstance(node, ast.Import) and any(a.name == "time" for a in node.names)
            for node in ast.walk(ast.parse(path.read_text()))
        )
    ]
    assert callers == []
