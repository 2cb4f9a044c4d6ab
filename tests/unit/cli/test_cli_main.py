"""The command line's frame: lazy commands, exit codes, what is said about errors."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from streamer import __version__
from streamer.cli import main as entry
from streamer.cli.client import ServerUnreachable
from streamer.cli.main import COMMANDS, app, exit_code
from streamer.errors import (
    CapacityError,
    CheckpointError,
    ConfigError,
    HorizonUnreachable,
    NotFound,
    StreamerError,
)

pytestmark = pytest.mark.unit


def test_help_lists_every_command_and_loads_none() -> None:
    program = (
        "import sys; sys.argv = ['streamer', '--help']\n"
        "from streamer.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as done: assert not done.code\n"
        "heavy = {'torch', 'ray', 'av', 'fastapi', 'streamer.cli.serve'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name, (_, line) in COMMANDS.items():
        assert name in done.stdout and line in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str) -> None:
    found = CliRunner().invoke(app, [name, "-h"])
    assert found.exit_code == 0, found.output
    assert "Usage: streamer" in " ".join(found.output.split())
    assert "completion" not in found.output


def test_version_and_wrong_command() -> None:
    assert CliRunner().invoke(app, ["--version"]).output.strip() == f"streamer {__version__}"
    wrong = CliRunner().invoke(app, ["modles"])
    assert wrong.exit_code == 2
    assert "Did you mean 'models'?" in wrong.output


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), 2),
        (HorizonUnreachable("x", 15.5), 2),
        (ServerUnreachable("x"), 3),
        (NotFound("x"), 4),
        (CheckpointError("x"), 1),
        (CapacityError("x"), 1),
        (StreamerError("x"), 1),
    ],
)
def test_exit_codes(error: StreamerError, code: int) -> None:
    assert exit_code(error) == code


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ConfigError("The port is taken."), 2, "streamer: The port is taken.\n"),
        (ZeroDivisionError("a bug"), 1, "streamer: internal error, ZeroDivisionError: a bug"),
        (OSError(28, "No space left"), 1, "streamer: the system refused: No space left.\n"),
        (PermissionError(13, "Denied", "x"), 1, "streamer: the system refused for x: Denied.\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_errors_leave_as_one_sentence(
    error: BaseException,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(as_json: bool = False) -> None:
        raise error

    monkeypatch.setattr("streamer.cli.version.version", broken)
    monkeypatch.setattr(sys, "argv", ["streamer", "version"])
    with pytest.raises(SystemExit) as left:
        entry.main()
    assert left.value.code == code
    found = capsys.readouterr()
    assert found.err.startswith(said) and "Traceback" not in found.err
