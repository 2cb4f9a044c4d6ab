"""`streamer anticipate FILE` on a real file, as a user runs it."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import av
import pytest
from local_service import run_streamer

from streamer.events.schema import Anticipation, server_message
from streamer.worlds.registry import make_world
from streamer.worlds.world import Stage

pytestmark = pytest.mark.e2e

FPS = 10


def video(path: Path, *, seconds: float) -> Path:
    world = make_world("bounce", seed=1, stage=Stage(height=64, width=64, fps=FPS))
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=Fraction(FPS))
        stream.width = stream.height = 64
        stream.pix_fmt = "yuv420p"
        for i in range(round(seconds * FPS)):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(world.render(i))))
        container.mux(stream.encode())
    return path


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return video(tmp_path_factory.mktemp("video") / "clip.mp4", seconds=20)


def test_one_valid_event_per_line_and_none_missing(clip: Path, tmp_path: Path) -> None:
    copy = tmp_path / "events.ndjson"
    done = run_streamer(
        "anticipate", str(clip), "--output", "ndjson", "--horizons", "0.5,0.7", "--out", str(copy)
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    events = [server_message.validate_json(line) for line in lines]
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, len(lines) + 1))
    found = [event for event in events if isinstance(event, Anticipation)]
    # 20 s at 4 fps are 80 frames: the first clip at 64, then one more every 4
    assert [e.window.last_frame for e in found] == [round(15.75 * FPS) + i * FPS for i in range(5)]
    assert [[f.horizon_s for f in e.futures] for e in found] == [[0.5, 1.0]] * 5
    assert found[0].surprise is None and found[1].surprise is not None
    assert found[0].capture_clock == "file"
    last = json.loads(lines[-1])
    assert (last["state"], last["reason"]) == ("ended", "eof")
    assert copy.read_text() == done.stdout
    assert "horizon 0.7 s became 1 s" in done.stderr
    assert done.stderr.splitlines()[0] == "loading model tiny ..."
    assert "untrained" in done.stderr.splitlines()[1]


def test_a_table_for_people(clip: Path) -> None:
    done = run_streamer("anticipate", str(clip), "--output", "table", "--stride", "2")
    assert done.returncode == 0, done.stderr
    assert "surprise" in done.stdout and "{" not in done.stdout
    assert "3 anticipations over 19.8 s" in done.stderr


def test_a_short_file_gives_one_padded_clip(tmp_path: Path) -> None:
    short = video(tmp_path / "short.mp4", seconds=2)
    done = run_streamer("anticipate", str(short))
    assert done.returncode == 0, done.stderr
    (only,) = [
        e for line in done.stdout.splitlines() if (e := json.loads(line))["type"] == "anticipation"
    ]
    assert "padded" in only["notes"]


@pytest.mark.parametrize(
    ("arguments", "settings", "code", "sentence"),
    [
        (["/no/such/file.mp4"], {}, 4, "There is no file /no/such/file.mp4"),
        (["{clip}", "--horizons", "99"], {}, 2, "reaches 15.5 s"),
        (["{clip}", "--horizons", "soon"], {}, 2, "--horizons is 'soon'"),
        (["{clip}", "--stride", "0.3"], {}, 2, "multiple of 0.5 s"),
        (["/"], {}, 2, "/ is a folder"),
        (["{clip}", "--frames", "7"], {}, 2, "frames is 7"),
        (["{clip}", "--frames", "100000"], {}, 2, "at most 64"),
        (["{clip}", "--fps", "1000"], {}, 2, "up to 240"),
        (["{clip}", "--out", "/dev/full"], {}, 1, "No space left on device"),
        (["{clip}", "--model", "tny"], {}, 4, "Did you mean 'tiny'?"),
        (["{clip}", "--mode", "sideways"], {}, 2, "sideways"),
        ([__file__], {}, 1, "not a video"),
        (["{clip}"], {"STREAMER_SAMPLING__FSP": "4"}, 2, "did you mean sampling.fps?"),
        (["{clip}", "--config", "/no/such.yaml"], {}, 2, "/no/such.yaml cannot be read"),
    ],
)
def test_what_cannot_work_is_explained(
    clip: Path, arguments: list[str], settings: dict[str, str], code: int, sentence: str
) -> None:
    given = [str(clip) if argument == "{clip}" else argument for argument in arguments]
    done = run_streamer("anticipate", *given, **settings)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert sentence in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
