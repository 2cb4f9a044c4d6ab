"""`streamer bench` before it starts anything, and what it prints in the end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streamer.bench.config import SoakConfig
from streamer.bench.soak import SoakReport
from streamer.bench.verdict import Verdict
from streamer.cli.bench import app, report_json
from streamer.cli.soak_view import verdict_lines
from streamer.errors import ConfigError

pytestmark = pytest.mark.unit


def report(*, ok: bool | None, is_partial: bool = False) -> SoakReport:
    return SoakReport(
        config=SoakConfig(minutes=2),
        is_partial=is_partial,
        seconds=60,
        samples=[],
        verdicts=[Verdict(name="memory", ok=ok, text="flat", numbers={"mb_per_h": 1.0})],
    )


def test_verdicts_are_lines_with_marks() -> None:
    assert verdict_lines(report(ok=True)) == ["✓ memory: flat", "✓ soak of 1.0 min: held"]
    assert verdict_lines(report(ok=False))[-1] == "✗ soak of 1.0 min: failed"
    assert verdict_lines(report(ok=None))[0] == "· memory: flat"
    assert report(ok=None).ok
    partial = verdict_lines(report(ok=True, is_partial=True))[-1]
    assert partial == "✓ soak of 1.0 min of 2, ended early: a partial verdict: held"


def test_the_report_is_one_json_object() -> None:
    told = json.loads(json.dumps(report_json(report(ok=False, is_partial=True))))
    assert (told["ok"], told["partial"], told["verdicts"][0]["name"]) == (False, True, "memory")
    assert told["config"]["bounds"]["memory_mb_per_h"] == 25.0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--plot", "soak.png"], "soak.svg"),
        (["--plot", "/nowhere/soak.svg"], "Cannot write"),
        (["--minutes", "0"], "minutes is 0.0"),
        (["--server", "host:1"], "--server"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(
    options: list[str], said: str, tmp_path: Path
) -> None:
    found = CliRunner().invoke(app, ["soak", *options])
    assert isinstance(found.exception, ConfigError)
    assert said in found.exception.message
