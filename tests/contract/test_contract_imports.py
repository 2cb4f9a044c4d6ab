"""What a process loads: no tensors where cameras and clients are, no cluster in the library."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.contract

LIGHT = {
    "settings": "streamer.settings",
    "ingest": "streamer.sessions.session, streamer.sessions.intake, streamer.sources.open,"
    " streamer.sources.rtsp, streamer.sources.file, streamer.sources.synthetic",
    "supervisor": "streamer.sessions.supervisor, streamer.store.memory",
    "gateway": "streamer.gateway.app",
    "ingest replica": "deployments.ingest",
    "edge replica": "deployments.gateway",
    "store actor": "deployments.store",
}
HEAVY = {
    "models": "streamer.serving.encoding, streamer.serving.anticipating",
    "runtime": "streamer.runtime",
}
Loaded = dict[str, set[str]]


def _loaded_after(parts: dict[str, str]) -> Loaded:
    """What is loaded after each part, imported one after another in one new process.

    So the first part that loads a thing is named, and what no part loads none loads alone.
    """
    lines = [
        f"import {imports}; found[{part!r}] = list(sys.modules)" for part, imports in parts.items()
    ]
    program = "\n".join(["import json, sys; found = {}", *lines, "print(json.dumps(found))"])
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return {part: set(modules) for part, modules in json.loads(done.stdout).items()}


@pytest.fixture(scope="module")
def light() -> Loaded:
    return _loaded_after(LIGHT)


@pytest.fixture(scope="module")
def heavy() -> Loaded:
    return _loaded_after(HEAVY)


@pytest.mark.parametrize("part", LIGHT)
def test_no_torch_is_loaded(light: Loaded, part: str) -> None:
    assert not {"torch", "transformers"} & light[part]


def test_models_load_no_camera_and_no_cluster(heavy: Loaded) -> None:
    assert not {"av", "aiortc", "redis", "fastapi", "ray"} & heavy["models"]


def test_the_local_runtime_loads_no_cluster(heavy: Loaded) -> None:
    assert "ray" not in heavy["runtime"]
