"""`streamer config show`: origins are right and nothing secret is shown."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from streamer.cli.config import shown_values
from streamer.cli.main import app
from streamer.settings import Settings, trace_settings

pytestmark = pytest.mark.unit

SECRET = "hunter2"


def show(*arguments: str, env: dict[str, str] | None = None) -> str:
    clean = {"STREAMER_CONFIG": "", "COLUMNS": "200"} | (env or {})
    done = CliRunner().invoke(app, ["config", "show", *arguments], env=clean)
    assert done.exit_code == 0, done.output
    return done.output


def test_every_value_has_its_origin(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("server: {host: '::1', port: 1}\nmodel: {name: from-file, threads: 3}\n")
    env = {"STREAMER_MODEL__NAME": "from-env", "STREAMER_SERVER__PORT": "2"}
    shown = json.loads(show("--json", "--config", str(file), "--port", "3", env=env))
    assert shown["server.host"] == {"value": "::1", "origin": "file"}
    assert shown["server.port"] == {"value": 3, "origin": "option"}
    assert shown["model.name"] == {"value": "from-env", "origin": "env"}
    assert shown["model.threads"] == {"value": 3, "origin": "file"}
    assert shown["rtsp.denied.max_tries"] == {"value": 3, "origin": "default"}
    assert shown["horizons_s"] == {"value": [0.5, 1.0, 2.0], "origin": "default"}


def test_a_mapping_in_the_environment_is_traced_into() -> None:
    traced = trace_settings(environ={"STREAMER_SAMPLING": '{"fps": 8}'})
    assert traced.origins == {"sampling.fps": "env"}
    assert traced.file is None


def test_lines_for_people(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("log: {level: debug}\n")
    lines = show("--changed", "--host", "::1", env={"STREAMER_CONFIG": str(file)}).splitlines()
    assert lines == ['server.host  "::1"  (option)', f'log.level    "debug"  (file {file})']
    assert show("--changed") == ""


def test_no_secret_is_shown() -> None:
    env = {
        "STREAMER_STORE__URL": f"redis://joe:{SECRET}@127.0.0.1:1/0",
        "STREAMER_STORE__PASSWORD": SECRET,
        "STREAMER_GATEWAY__TOKENS_FILE": "tokens.yaml",
        "STREAMER_GATEWAY__ALLOWED_ORIGINS": f"https://joe:{SECRET}@wall.example",
    }
    for output in (show(env=env), show("--json", env=env)):
        assert SECRET not in output and "joe" not in output
        assert "redis://***@127.0.0.1:1/0" in output
        assert "tokens.yaml" in output


def secret_names(tree: Any, path: str = "") -> list[str]:
    """Settings whose dataclass keeps them out of its repr."""
    found = []
    for field in fields(tree):
        value = getattr(tree, field.name)
        if is_dataclass(value):
            found += secret_names(value, f"{path}{field.name}.")
        elif not field.repr:
            found.append(f"{path}{field.name}")
    return found


def test_what_the_configs_call_secret_is_hidden() -> None:
    names = [
        name
        for section in Settings.model_fields
        if is_dataclass(value := getattr(Settings(), section))
        for name in secret_names(value, f"{section}.")
    ]
    assert "store.password" in names
    for name in names:
        text = f"redis://:{SECRET}@h" if name.endswith("url") else SECRET
        variable = "STREAMER_" + name.upper().replace(".", "__")
        shown = {v.name: v for v in shown_values(trace_settings(environ={variable: text}))}
        assert shown[name].origin == "env"
        assert "***" in shown[name].value and SECRET not in shown[name].value
