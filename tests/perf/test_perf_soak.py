"""The soak in its shortest form: it starts a service, measures, judges and leaves nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from local_service import run_streamer

pytestmark = pytest.mark.perf


def test_a_short_soak_holds_and_tells_its_numbers(tmp_path: Path) -> None:
    plot = tmp_path / "soak.svg"
    done = run_streamer(
        *("bench", "soak", "--minutes", "0.4", "--sample", "1", "--max-age-s", "20"),
        *("--plot", str(plot), "--output", "json"),
    )
    told = json.loads(done.stdout)
    verdicts = {verdict["name"]: verdict for verdict in told["verdicts"]}
    assert verdicts.keys() >= {"service", "memory", "age of events", "threads", "sequence"}
    for name in ("service", "memory", "threads", "open files", "sequence"):
        assert verdicts[name]["ok"], verdicts[name]
    assert verdicts["slow reader"]["ok"] is not False, verdicts["slow reader"]
    assert 15 <= len(told["samples"]) <= 30
    newest = told["samples"][-1]
    assert newest["memory_mb"] > 50 and newest["threads"] > 1 and newest["fds"] > 3
    assert sum(sample["events"] for sample in told["samples"]) > 10
    assert plot.read_text().startswith("<svg")
    assert done.returncode == (0 if told["ok"] else 1), done.stderr
    assert "Traceback" not in done.stderr
