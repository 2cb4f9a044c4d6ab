"""URLs to sources."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from media_files import corner, write_video

from streamer.errors import ConfigError, SourceForbidden, SourceUnavailable, SourceUnsupported
from streamer.sources.config import FileConfig, SourceConfig
from streamer.sources.file import FileSource
from streamer.sources.open import file_url, open_source
from streamer.sources.options import check_options
from streamer.sources.pace import Pace
from streamer.sources.policy import SourcePolicy
from streamer.sources.synthetic import SyntheticSource

pytestmark = pytest.mark.unit


def local(folder: Path) -> SourcePolicy:
    return SourcePolicy(allow_files=(str(folder),))


def test_synthetic_urls_open_worlds() -> None:
    source = open_source("synthetic:zone?seed=4", policy=SourcePolicy())
    assert isinstance(source, SyntheticSource)
    assert (source.live, source.name) == (True, "synthetic:zone?seed=4")


def test_file_urls_open_files(tmp_path: Path) -> None:
    path = tmp_path / "a b?#%.mp4"
    path.write_bytes(b"x")
    source = open_source(file_url(path), policy=local(tmp_path))
    assert isinstance(source, FileSource) and not source.live
    paced = open_source(file_url(path) + "?pace=realtime", policy=local(tmp_path))
    assert paced.live


def test_rtsp_urls_open_cameras_without_contacting_them() -> None:
    policy = SourcePolicy(allowed_cidrs=("127.0.0.1/32",))
    source = open_source("rtsp://me:secret@127.0.0.1:1/cam", policy=policy)
    assert source.live and "secret" not in source.name


def test_files_need_permission(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"x")
    with pytest.raises(SourceForbidden):
        open_source(file_url(tmp_path / "a.mp4"), policy=SourcePolicy())
    with pytest.raises(SourceUnavailable):
        open_source(file_url(tmp_path / "b.mp4"), policy=local(tmp_path))


@pytest.mark.parametrize(
    "url", ["", "clip.mp4", "/tmp/clip.mp4", "webcam:0", "webrtc:cam", "http://h/x", "C:/clip.mp4"]
)
def test_other_schemes_say_what_works(url: str) -> None:
    with pytest.raises(ConfigError, match=r"rtsp://host/path, file:///path/clip\.mp4 or synth"):
        open_source(url, policy=SourcePolicy())


def test_scheme_that_the_policy_leaves_out_is_forbidden() -> None:
    with pytest.raises(SourceForbidden):
        open_source("synthetic:zone", policy=SourcePolicy(schemes=("rtsp",)))


@pytest.mark.parametrize(
    ("query", "sentence"),
    [("pase=realtime", "did you mean 'pace'"), ("pace=slow", "choose fast or realtime")],
)
def test_unknown_file_options_say_so(tmp_path: Path, query: str, sentence: str) -> None:
    (tmp_path / "a.mp4").write_bytes(b"x")
    with pytest.raises(ConfigError, match=sentence):
        open_source(f"{file_url(tmp_path / 'a.mp4')}?{query}", policy=local(tmp_path))


def test_config_reaches_its_source(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", [corner()])
    config = SourceConfig(file=FileConfig(max_pixels=100))
    source = open_source(file_url(path), policy=local(tmp_path), config=config)
    assert isinstance(source, FileSource)
    with pytest.raises(SourceUnsupported, match="at most 100 pixels"):
        source.probe()
    with pytest.raises(ConfigError, match="max_pixels is 0"):
        FileConfig(max_pixels=0)


def test_opening_worlds_and_files_loads_no_tensors() -> None:
    code = "import sys, streamer.sources.open; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_pace_starts_anew_after_a_jump() -> None:
    now, waits = [0.0], list[float]()

    def wait(seconds: float) -> None:
        waits.append(seconds)
        now[0] += seconds

    pace = Pace(now_ns=lambda: round(now[0] * 1e9), wait=wait)
    for time_s in (10.0, 10.5, 9000.0, 9000.5, 3.0, 3.5):
        pace.hold(time_s)
    assert waits == pytest.approx([0.5, 0.5, 0.5])
    now[0] += 1.0
    pace.hold(4.0)
    assert len(waits) == 3


@pytest.mark.parametrize(
    "url",
    [
        "synthetic:bounce?sed=1",
        "synthetic:nope",
        "synthetic:bounce?fps=nan",
        "file:///a.mp4?pace=slow",
        "file:///a.mp4?speed=2",
        "FILE:///a.mp4?pace=",
    ],
)
def test_options_are_checked_without_opening(url: str) -> None:
    with pytest.raises(ConfigError, match=r"option|world"):
        check_options(url)


@pytest.mark.parametrize(
    "url", ["synthetic:zone?seed=4", "file:///no/such.mp4?pace=realtime", "rtsp://h/x?pace=slow"]
)
def test_options_that_can_work_pass(url: str) -> None:
    check_options(url)
