"""What a process loads: no tensors where cameras and clients are, no cluster in the library."""

from __future__ import annotations

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


def _loaded_after(imports: str) -> set[str]:
    program = f"import {imports}, sys; print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize("part", LIGHT)
def test_no_torch_is_loaded(part: str) -> None:
    assert not {"torch", "transformers"} & _loaded_after(LIGHT[part])


def test_models_load_no_camera_and_no_cluster() -> None:
    loaded = _loaded_after("streamer.serving.encoding, streamer.serving.anticipating")
    assert not {"av", "aiortc", "redis", "fastapi", "ray"} & loaded


def test_the_local_runtime_loads_no_cluster() -> None:
    assert "ray" not in _loaded_after("streamer.runtime")
