"""What people see of an episode of surprise: in lines, in `watch`, in `anticipate`."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from streamer.cli.episodes import EpisodeWatch
from streamer.cli.lines import event_line
from streamer.cli.panel import StreamPanel
from streamer.cli.playback_view import View

pytestmark = pytest.mark.unit


def moment(second: int) -> str:
    return f"2026-12-01T09:00:{second:02}.300000Z"


def episode(phase: str, *, second: int, **changes: Any) -> dict[str, Any]:
    return {
        "type": "surprise",
        "stream": "demo",
        "seq": 430,
        "phase": phase,
        "episode": "a",
        "reason": None,
        "start": moment(3),
        "duration_s": float(second - 3),
        "peak": {"z": 12.0, "capture_time": moment(3)},
    } | changes


def clip(second: int, z: float | None, name: str | None) -> dict[str, Any]:
    return {
        "type": "anticipation",
        "stream": "demo",
        "seq": 429,
        "window": {
            "start": moment(0),
            "end": moment(second),
            "frames": 8,
            "fps": 4.0,
            "dropped": 0,
        },
        "futures": [],
        "surprise": {"value": 1.2, "z": z, "episode": name},
        "latency_ms": dict.fromkeys(("queue", "encode", "rollout", "total"), 1.0),
        "notes": [],
        "model": {"name": "tiny", "trained": True},
    }


def test_lines() -> None:
    since = "since 09:00:03.3 ({} s), peak z +12.0 at 09:00:03.3"
    assert event_line(episode("begin", second=3)) == (
        f"demo #430  surprise begins  {since.format('0.0')}"
    )
    assert event_line(episode("end", second=20, reason="calm")) == (
        f"demo #430  surprise is over: calm  {since.format('17.0')}"
    )
    assert "surprise ▲ 1.200 (z +9.0)  drift" in event_line(clip(3, 9.0, "a"))
    assert "surprise 1.200 (z +9.0)  drift" in event_line(clip(3, 9.0, None))


def test_an_episode_from_begin_to_end() -> None:
    watch = EpisodeWatch()
    watch.take(clip(2, 0.0, None))
    assert watch.text() == ""
    watch.take(clip(3, 12.0, "a"))
    assert watch.text() == "▲ surprise"
    watch.take(episode("begin", second=3))
    assert watch.text() == "▲ surprise since 09:00:03.3 (0.0 s), peak z +12.0 at 09:00:03.3"
    watch.take(clip(5, 13.0, "a"))
    watch.take(clip(6, 11.0, "a"))
    assert watch.text() == "▲ surprise since 09:00:03.3 (3.0 s), peak z +13.0 at 09:00:05.3"
    assert watch.take(episode("end", second=8, reason="calm")) == (
        "surprise is over (calm): since 09:00:03.3 (5.0 s), peak z +12.0 at 09:00:03.3"
    )
    assert watch.text() == ""


def test_joined_in_the_middle_or_cut_off() -> None:
    watch = EpisodeWatch()
    watch.take(clip(9, 7.0, "a"))
    watch.take({"type": "gap", "reason": "slow_subscriber"})
    watch.take(clip(10, None, "a"))
    assert watch.text() == "▲ surprise"
    watch.take(clip(11, 0.0, None))  # its end was not received
    assert watch.text() == ""
    watch.take(episode("update", second=12))
    watch.take({"type": "gap", "reason": "restart"})
    assert watch.text() == ""


def test_the_panel_of_watch() -> None:
    panel = StreamPanel("demo", state="live")
    console = Console(width=100, record=True, file=io.StringIO())
    panel.take(clip(3, 12.0, "a"))
    panel.take(episode("begin", second=3))
    console.print(panel.render())
    assert "▲ surprise since 09:00:03.3 (0.0 s), peak z +12.0" in console.export_text()
    panel.take(episode("end", second=8, reason="stopped"))
    console.print(panel.render())
    text = console.export_text()
    assert "▲" not in text and "surprise is over (stopped): since 09:00:03.3 (5.0 s)" in text


def test_the_table_of_anticipate() -> None:
    view = View(is_table=True, name="clip.mp4", duration_s=None)
    console = Console(width=100, record=True, file=io.StringIO())
    for event in (clip(3, 12.0, "a"), episode("begin", second=3)):
        view.show(json.dumps(event).encode())
    console.print(*view.tables())
    text = console.export_text()
    assert "▲ +12.0" in text and "▲ surprise since 09:00:03.3" in text
    view.show(json.dumps(episode("end", second=8, reason="calm")).encode())
    console.print(*view.tables())
    text = console.export_text()
    assert "surprise is over (calm)" in text and "▲ surprise" not in text
