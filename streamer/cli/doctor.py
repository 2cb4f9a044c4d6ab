"""`streamer doctor`: will it work here, and if not, what is to be done?"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from streamer.doctor.finding import Finding

__all__ = ["doctor"]

_MARKS: Mapping[str, str] = {"ok": "✓", "warn": "!", "fail": "✗"}
_PLAIN_MARKS: Mapping[str, str] = {"ok": "+", "warn": "!", "fail": "x"}


def doctor(
    config: Annotated[Path | None, typer.Option(help="Settings file (YAML).")] = None,
    model: Annotated[str | None, typer.Option(help="As for serve.")] = None,
    host: Annotated[str | None, typer.Option(help="As for serve.")] = None,
    port: Annotated[int | None, typer.Option(help="As for serve.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Check software, machine and settings; say what to mend. Exit code 1 when something fails.

    Example: streamer doctor --model models/vitl
    """
    from streamer.doctor.examination import examine

    options: dict[str, Any] = {"model": {"name": model}, "server": {"host": host, "port": port}}
    marks = _marks()
    findings = []
    for finding in examine(config=config, options=options):
        findings.append(finding)
        if not as_json:
            _print(finding, marks)
    is_well = all(finding.status != "fail" for finding in findings)
    if as_json:
        print(json.dumps({"ok": is_well, "checks": [asdict(each) for each in findings]}))
    if not is_well:
        raise typer.Exit(1)


def _print(finding: Finding, marks: Mapping[str, str]) -> None:
    print(f"{marks[finding.status]} {finding.check:8}  {finding.fact}", flush=True)
    if finding.fix:
        print(f"{'':12}{finding.fix}", flush=True)


def _marks() -> Mapping[str, str]:
    """Those that the terminal can write."""
    try:
        "".join(_MARKS.values()).encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return _PLAIN_MARKS
    return _MARKS
