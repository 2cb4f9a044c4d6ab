"""`streamer encode` from a video file to safetensors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from media_files import write_video
from safetensors import safe_open
from typer.testing import CliRunner

from streamer.cli.main import app
from streamer.errors import ConfigError, NotFound
from streamer.latents.token_ids import parse_ids

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    images = [np.full((48, 64, 3), 5 * n, dtype=np.uint8) for n in range(30)]
    return write_video(tmp_path_factory.mktemp("video") / "ramp.mp4", images, fps=10)


def _encode(*arguments: object):
    return CliRunner().invoke(app, ["encode", *map(str, arguments)])


def _read(path: Path):
    with safe_open(path, framework="np") as file:
        return {key: file.get_tensor(key) for key in file.keys()}, file.metadata()  # noqa: SIM118


def test_latents(video: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.safetensors"
    result = _encode(video, "--out", out, "--frames", 4, "--start-s", 1)
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert "random weights" in result.stderr
    tensors, metadata = _read(out)
    assert tensors["latents"].shape == (32, 192)
    assert json.loads(metadata["grid"]) == [2, 4, 4]
    assert (metadata["model"], metadata["first_frame"], metadata["padded"]) == ("tiny", "10", "0")
    assert len(metadata["fingerprint"]) == 12


def test_a_short_file_is_padded(video: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.safetensors"
    done = _encode(video, "--out", out, "--frames", 16)
    assert done.exit_code == 0 and "shorter than a clip" in done.stderr
    assert int(_read(out)[1]["padded"]) > 0


def test_another_suffix_would_lie(video: Path, tmp_path: Path) -> None:
    result = _encode(video, "--out", tmp_path / "x.npz")
    assert isinstance(result.exception, ConfigError) and "x.safetensors" in str(result.exception)


def test_masked_prediction(video: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.safetensors"
    ids = ["--context-ids", "0-15,20", "--target-ids", "32-47"]
    assert _encode(video, "--out", out, "--frames", 4, *ids).exit_code == 0
    tensors, _ = _read(out)
    assert tensors["prediction"].shape == (16, 192)
    assert tensors["context_ids"].tolist() == [*range(16), 20]
    assert _encode(video, "--out", out, "--frames", 4, "--target-ids", "16-31").exit_code == 0
    assert _read(out)[0]["context_ids"].tolist() == list(range(16))


@pytest.mark.parametrize(
    "arguments",
    [
        ["--context-ids", "0"],
        ["--target-ids", "5-1"],
        ["--target-ids", "0-31"],
        ["--target-ids", "64"],
        ["--frames", "3"],
        ["--frames", "0"],
        ["--fps", "0"],
        ["--fps", "nan"],
        ["--start-s", "-1"],
        ["--start-s", "60"],
    ],
    ids=" ".join,
)
def test_what_cannot_work_is_a_config_error(video: Path, tmp_path: Path, arguments) -> None:
    usual = [] if "--frames" in arguments else ["--frames", "4"]
    result = _encode(video, "--out", tmp_path / "x", *usual, *arguments)
    assert isinstance(result.exception, ConfigError)
    assert not (tmp_path / "x").exists()


def test_files_that_are_not_there(video: Path, tmp_path: Path) -> None:
    missing = _encode(tmp_path / "none.mp4", "--out", tmp_path / "x")
    assert isinstance(missing.exception, NotFound)
    nowhere = _encode(video, "--out", tmp_path / "no" / "x")
    assert isinstance(nowhere.exception, ConfigError)


def test_ids() -> None:
    assert parse_ids("0-2, 9,4-4", option="--x") == [0, 1, 2, 9, 4]
    for bad in ("", "a", "1-", "-1", "3-1", "1,,2", "0-99999999999", "1.5"):
        with pytest.raises(ConfigError, match="--x"):
            parse_ids(bad, option="--x")
