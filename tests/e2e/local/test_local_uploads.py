"""Files sent to a service give what they give without one: real commands, a real service."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
from local_service import Service, run_streamer, started_service
from media_files import write_video
from safetensors.numpy import load, load_file, save
from same_events import assert_same_events

from streamer.events.schema import server_message
from streamer.worlds.registry import make_world
from streamer.worlds.world import Stage

pytestmark = pytest.mark.e2e

FPS = 10


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    world = make_world("bounce", seed=1, stage=Stage(height=64, width=64, fps=FPS))
    path = tmp_path_factory.mktemp("video") / "bounce.mp4"
    return write_video(path, [world.render(i) for i in range(20 * FPS)], fps=FPS)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with started_service() as service:
        yield service


def test_the_same_events(service: Service, clip: Path, tmp_path: Path) -> None:
    options = ("--output", "ndjson", "--horizons", "0.5,1.5", "--stride", "2")
    copy = tmp_path / "events.ndjson"
    there = run_streamer(
        "anticipate", str(clip), "--server", service.url, "--out", str(copy), *options
    )
    here = run_streamer("anticipate", str(clip), *options)
    assert (there.returncode, here.returncode) == (0, 0), there.stderr
    events = there.stdout.splitlines()
    assert sum('"type":"anticipation"' in line for line in events) == 3
    assert_same_events(events, here.stdout.splitlines())
    assert copy.read_text() == there.stdout
    assert [json.loads(line)["id"] for line in events] == [
        f"upload:{n}" for n in range(1, len(events) + 1)
    ]
    for line in events:
        server_message.validate_json(line)
    assert "untrained" in there.stderr and "3 anticipations over 19.8 s" in there.stderr


def test_a_table_for_people(service: Service, clip: Path) -> None:
    done = run_streamer(
        "anticipate", str(clip), "--server", service.url, "--output", "table", "--mode", "gap"
    )
    assert done.returncode == 0, done.stderr
    assert "surprise" in done.stdout and "{" not in done.stdout


@pytest.mark.parametrize(
    "options",
    [
        ["--frames", "16", "--start-s", "1", "--fps", "5"],
        ["--frames", "4", "--context-ids", "0-15,20", "--target-ids", "32-47"],
    ],
    ids=["latents", "prediction"],
)
def test_the_same_latents(service: Service, clip: Path, tmp_path: Path, options: list[str]) -> None:
    there, here = tmp_path / "there.safetensors", tmp_path / "here.safetensors"
    done = run_streamer("encode", str(clip), "--server", service.url, "--out", str(there), *options)
    assert done.returncode == 0, done.stderr
    assert f"wrote {there}" in done.stderr and "random weights" in done.stderr
    assert run_streamer("encode", str(clip), "--out", str(here), *options).returncode == 0
    found, expected = load_file(there), load_file(here)
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name] == pytest.approx(values, abs=1e-5)
    assert metadata(there) == metadata(here)
    assert metadata(there)["dtype"] == "float32"


def metadata(path: Path) -> dict[str, str]:
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    found: dict[str, str] = json.loads(content[8 : 8 + length])["__metadata__"]
    return found


async def test_frames_instead_of_a_video(service: Service) -> None:
    world = make_world("drift", seed=2, stage=Stage(height=64, width=64, fps=FPS))
    frames = np.stack([world.render(i) for i in range(4)])
    async with httpx2.AsyncClient(base_url=service.url, timeout=30) as client:
        answer = await client.post(
            "/v1/latents",
            content=save({"frames": frames}),
            headers={"Content-Type": "application/octet-stream"},
        )
    assert answer.status_code == 200, answer.text
    assert load(answer.content)["latents"].shape == (32, 192)


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["anticipate", "/no/such.mp4"], 4, "There is no file /no/such.mp4"),
        (["anticipate", "{clip}", "--horizons", "99"], 2, "the largest is 15.5 s"),
        (["anticipate", "{clip}", "--model", "tiny"], 2, "--model"),
        (["anticipate", __file__], 1, "not a video"),
        (["encode", __file__, "--out", "{out}"], 1, "not a video"),
        (["encode", "{clip}", "--out", "{out}", "--frames", "3"], 2, "frames"),
        (["encode", "{clip}", "--out", "{out}", "--model", "tiny"], 2, "--model"),
    ],
    ids=lambda value: " ".join(value[:1] + value[2:]) if isinstance(value, list) else "",
)
def test_what_cannot_work_is_explained(
    service: Service, clip: Path, tmp_path: Path, arguments: list[str], code: int, sentence: str
) -> None:
    out = tmp_path / "x.safetensors"
    names = {"{clip}": str(clip), "{out}": str(out)}
    given = [names.get(argument, argument) for argument in arguments]
    done = run_streamer(*given, "--server", service.url)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert sentence in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not out.exists()


def test_nobody_answers(clip: Path) -> None:
    done = run_streamer("anticipate", str(clip), "--server", "http://127.0.0.1:1")
    assert (done.returncode, done.stdout) == (3, "")


async def test_what_the_replicas_say_of_themselves(service: Service, clip: Path) -> None:
    assert run_streamer("anticipate", str(clip), "--server", service.url).returncode == 0
    async with httpx2.AsyncClient(base_url=service.url, timeout=30) as client, asyncio.timeout(30):
        rows: list[dict[str, Any]] = []
        while not all(row["batches"] > 2 for row in rows) or not rows:
            await asyncio.sleep(0.1)
            rows = (await client.get("/v1/models/tiny")).json()["stage_times"]
        labels = (await client.get("/v1/models/tiny/labels")).json()
    assert [row["stage"] for row in rows] == ["encode", "rollout"]
    assert all(0 < row["p50_ms"] <= row["p95_ms"] < 60_000 for row in rows)
    assert labels["heads"] == {}


def test_a_server_that_dies_in_the_middle_is_told(clip: Path, tmp_path: Path) -> None:
    with started_service(STREAMER_UPLOADS__FOLDER=str(tmp_path)) as service:
        command = [str(Path(sys.executable).with_name("streamer")), "anticipate", str(clip)]
        command += ["--server", service.url, "--output", "ndjson", "--stride", "0.25", "--fps", "8"]
        asking = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert asking.stdout is not None
        assert '"starting"' in asking.stdout.readline()
        service.process.kill()
        _, errors = asking.communicate(timeout=60)
    assert asking.returncode == 3, errors
    assert list(tmp_path.iterdir()) == []
    assert "broke off" in errors and "Traceback" not in errors
