"""What `streamer anticipate` keeps of the events it shows."""

from __future__ import annotations

import json

import pytest

from streamer.cli.playback_view import View

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("is_table", "rows"), [(False, 15), (True, 40)])
def test_lines_are_not_kept_for_a_table_that_nobody_asked_for(is_table, rows, capsysbinary):
    view = View(is_table=is_table, name="clip.mp4", duration_s=None)
    for seq in range(1, 41):
        view.show(_anticipation(seq))
    assert view.table().row_count == rows
    assert len(capsysbinary.readouterr().out.splitlines()) == (0 if is_table else 40)


def _anticipation(seq):
    window = {"start": "1970-01-01T00:00:00.000000Z", "end": "1970-01-01T00:00:01.000000Z"}
    event = {"type": "anticipation", "seq": seq, "window": window, "surprise": None}
    return json.dumps(event | {"futures": [], "latency_ms": {"total": 1.0}, "notes": []}).encode()
