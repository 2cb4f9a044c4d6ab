"""`streamer doctor`: order, marks, exit code, JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from streamer.cli.main import app
from streamer.doctor import examination
from streamer.doctor.finding import Finding, fail, ok, warn

pytestmark = pytest.mark.unit

CHECKS = (
    *("python", "config", "torch", "threads", "ffmpeg", "ray", "clock", "disk", "shm"),
    *("port", "access", "store", "horizons", "model"),
)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str, found: list[Finding]) -> Any:
    def examine(**_: object) -> Iterator[Finding]:
        yield from found

    monkeypatch.setattr(examination, "examine", examine)
    return CliRunner().invoke(app, ["doctor", *arguments])


GOOD = ok("torch", "2.13")
BAD = fail("port", "8000 is taken", fix="Take another.")
SO_SO = warn("disk", "3 GiB free", fix="Free some.")


def test_lines_have_a_mark_and_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(monkeypatch, found=[GOOD, SO_SO, BAD])
    assert done.exit_code == 1
    assert [line.split()[0] for line in done.output.splitlines()] == ["✓", "!", "Free", "✗", "Take"]


def test_warnings_are_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, found=[GOOD, SO_SO]).exit_code == 0


def test_json(monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(monkeypatch, "--json", found=[GOOD, BAD])
    assert done.exit_code == 1
    report = json.loads(done.output)
    assert report["ok"] is False
    assert report["checks"][1] == {
        "check": "port",
        "status": "fail",
        "fact": "8000 is taken",
        "fix": "Take another.",
    }


def test_everything_is_looked_at() -> None:
    options = {"server": {"port": 0}}
    found = list(examination.examine(options=options, environ={}))
    assert tuple(finding.check for finding in found) == CHECKS
    needed = {"python", "config", "torch", "ffmpeg", "port", "access", "store"}
    assert {f.check for f in found if f.status != "fail"} >= needed


def test_wrong_settings_are_a_finding_and_the_machine_is_looked_at_all_the_same() -> None:
    found = list(examination.examine(environ={"STREAMER_SAMPLNG__FPS": "8"}))
    assert tuple(finding.check for finding in found) == CHECKS[:9]
    assert found[1].status == "fail" and "did you mean sampling" in found[1].fact
