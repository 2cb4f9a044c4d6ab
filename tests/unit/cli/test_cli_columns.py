"""In a narrow terminal columns go, numbers stay whole."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from streamer.cli.columns import fitting
from streamer.cli.playback_view import View

pytestmark = pytest.mark.unit

COLUMNS = [["seq", "1"], ["surprise", "0.113"], ["notes", "untrained"]]


@pytest.mark.parametrize(
    ("width", "kept"), [(24, [0, 1, 2]), (23, [0, 1]), (14, [0, 1]), (13, [1]), (1, [1])]
)
def test_the_least_needed_goes_first(width: int, kept: list[int]) -> None:
    assert fitting(COLUMNS, width=width, expendable=(2, 0), between=1, edges=2) == kept


@pytest.mark.parametrize("width", [30, 40, 60, 80, 100])
def test_no_number_of_an_anticipation_is_cut(
    width: int, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    view = View(is_table=True, name="clip.mp4", duration_s=None)
    window = {"start": "1970-01-01T00:00:00.000000Z", "end": "1970-01-01T00:00:01.000000Z"}
    futures = [{"horizon_s": h, "drift": 0.125} for h in (0.5, 1.0, 2.0)]
    event = {"type": "anticipation", "seq": 11, "window": window, "futures": futures}
    facts = {"surprise": {"value": 1.113, "z": -0.4}, "latency_ms": {"total": 123.0}}
    view.show(json.dumps(event | facts | {"notes": ["untrained"]}).encode())
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(view.table(width=width))
    text = console.export_text()
    assert "…" not in text and "1.113" in text and "0.125" in text
    assert ("untrained" in text) is (width >= 80)
