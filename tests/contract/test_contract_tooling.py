"""The tools that hold the rules run in the suite, so that no rule lives only in a document."""

from __future__ import annotations

import pytest
from tree_tools import TOOLS, Outcome

pytestmark = pytest.mark.contract


@pytest.mark.parametrize("tool", TOOLS)
def test_tool_is_content(tool: str, tool_outcome: Outcome) -> None:
    code, said = tool_outcome(tool)
    assert code == 0, f"{tool}:\n{said}"
