"""What contract tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tree_tools import Outcome, running_tools


@pytest.fixture(scope="session", autouse=True)
def tool_outcome(request: pytest.FixtureRequest) -> Iterator[Outcome]:
    """The tools that are asked for in this run; they work while other contract tests wait."""
    asked = [
        item.callspec.params["tool"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == "test_tool_is_content"
    ]
    with running_tools(asked) as outcome:
        yield outcome
