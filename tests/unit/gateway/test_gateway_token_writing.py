"""`streamer token new --file` appends, or leaves the file as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streamer.cli.main import app
from streamer.errors import ConfigError
from streamer.gateway.token_writing import add_token
from streamer.gateway.tokens import new_token, read_tokens

pytestmark = pytest.mark.unit


def _run(file: Path, name: str, *more: str):
    return CliRunner().invoke(app, ["token", "new", name, "--file", str(file), *more])


def test_a_file_is_made_and_appended_to(tmp_path):
    file = tmp_path / "tokens.yaml"
    secrets = [_run(file, name).stdout.strip() for name in ("a", "b")]
    assert file.stat().st_mode & 0o777 == 0o600
    found = [read_tokens(file).find(secret) for secret in secrets]
    assert [token and token.name for token in found] == ["a", "b"]
    assert list(tmp_path.iterdir()) == [file]


def test_comments_a_missing_last_newline_and_the_mode_are_kept(tmp_path):
    file, real = tmp_path / "link.yaml", tmp_path / "tokens.yaml"
    file.symlink_to(real)
    line = json.dumps(new_token("a", ["read"])[1].model_dump(mode="json"))
    real.write_text(f"# ours\n- {line}")
    real.chmod(0o640)
    add_token(file, new_token("b", ["read"])[1])
    assert file.is_symlink() and real.read_text().startswith("# ours\n")
    assert len(read_tokens(file)) == 2
    assert real.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("content", ["Error: spoiled", "- {name: a}", "[]x"])
def test_a_bad_file_is_left_alone(tmp_path, content):
    file = tmp_path / "tokens.yaml"
    file.write_text(content)
    made = _run(file, "b")
    assert isinstance(made.exception, ConfigError) and made.stdout == ""
    assert file.read_text() == content


def test_a_name_that_is_taken_a_list_in_json_and_a_wrong_scope_change_nothing(tmp_path):
    file, listed = tmp_path / "tokens.yaml", tmp_path / "tokens.json"
    _run(file, "a")
    listed.write_text(json.dumps([new_token("x", ["read"])[1].model_dump(mode="json")]))
    for path, name, more in ((file, "a", ()), (listed, "b", ()), (file, "c", ("--scopes", "reed"))):
        before = path.read_bytes()
        made = _run(path, name, *more)
        assert isinstance(made.exception, ConfigError) and made.stdout == ""
        assert path.read_bytes() == before
    assert isinstance(_run(tmp_path / "no" / "t.yaml", "a").exception, ConfigError)
