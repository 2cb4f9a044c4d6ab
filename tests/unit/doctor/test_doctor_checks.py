"""Each check on a machine that is well, and on ones that are not."""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import count
from pathlib import Path

import pytest

from streamer.doctor import software
from streamer.doctor.finding import Finding, failed
from streamer.doctor.horizons import check_horizons
from streamer.doctor.machine import (
    check_clock,
    check_disk,
    check_port,
    check_shared_memory,
    check_threads,
    usable_cores,
)
from streamer.doctor.service import (
    check_access,
    check_model,
    check_store_answers,
    running_version,
)
from streamer.doctor.software import (
    DECODERS,
    check_ffmpeg,
    check_python,
    check_ray,
    check_torch,
    find_decoders,
)
from streamer.errors import CapacityError, ConfigError
from streamer.gateway.tokens import new_token
from streamer.settings import ModelConfig, ServerConfig, Settings, trace_settings
from streamer.store.config import StoreConfig

pytestmark = pytest.mark.unit

GIB = 1 << 30
S = 10**9


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def port_of(server: socket.socket) -> int:
    return int(server.getsockname()[1])


def status(finding: Finding) -> str:
    assert bool(finding.fix) == (finding.status != "ok"), finding
    return finding.status


def serving(**options: object) -> Settings:
    return Settings(server=ServerConfig(**options))  # type: ignore[arg-type]


def modelled(name: str = "tiny", **options: object) -> Settings:
    return Settings(model=ModelConfig(name=name, **options))  # type: ignore[arg-type]


def test_python() -> None:
    assert status(check_python()) == "ok"
    assert status(check_python((3, 10, 4))) == "fail"


def test_torch() -> None:
    assert status(check_torch(Settings(), has_gpu=False)) == "ok"


def test_torch_without_the_wanted_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert status(check_torch(Settings(), has_gpu=True)) == "warn"
    assert status(check_torch(modelled(device="cuda:1"), has_gpu=False)) == "fail"


def test_torch_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda _: "H200")
    assert "H200" in check_torch(modelled(device="cuda")).fact


@pytest.mark.parametrize("package", ["torch", "av", "ray"])
def test_a_package_that_does_not_load(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    check = {"torch": lambda: check_torch(Settings()), "av": check_ffmpeg}
    finding = check.get(package, lambda: check_ray(Settings()))()
    assert status(finding) == ("warn" if package == "ray" else "fail")
    assert "import" in finding.fact


def test_decoders() -> None:
    assert find_decoders() >= {"H.264", "HEVC", "MJPEG"}
    assert status(check_ffmpeg(lambda: set(DECODERS))) == "ok"
    assert status(check_ffmpeg(lambda: set(DECODERS) - {"AV1"})) == "warn"
    finding = check_ffmpeg(lambda: {"H.264"})
    assert status(finding) == "fail" and "HEVC, VP9" in finding.fact


def test_ray_alone_and_beside_another(
    tmp_path: Path, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert status(check_ray(Settings(), temp=tmp_path)) == "ok"
    (tmp_path / "ray").mkdir()
    note = tmp_path / "ray" / "ray_current_cluster"
    note.write_text(f"127.0.0.1:{port_of(listener)}")
    assert "another one runs" in check_ray(Settings(), temp=tmp_path).fact
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    assert "joins" in check_ray(Settings(), temp=tmp_path).fact
    note.write_text("127.0.0.1:1")
    assert status(check_ray(Settings(), temp=tmp_path)) == "fail"


def test_a_ray_to_join(listener: socket.socket, tmp_path: Path) -> None:
    def at(address: str) -> Settings:
        return Settings(ray=replace(Settings().ray, address=address))

    assert status(check_ray(at(f"127.0.0.1:{port_of(listener)}"), temp=tmp_path)) == "ok"
    assert status(check_ray(at("127.0.0.1:1"), temp=tmp_path)) == "fail"
    assert status(check_ray(at("no place:x"), temp=tmp_path)) == "fail"
    client = check_ray(at(f"ray://127.0.0.1:{port_of(listener)}"), temp=tmp_path)
    assert status(client) == "fail" and "host:port" in client.fix


def test_no_more_threads_than_cores() -> None:
    assert status(check_threads(Settings(), threads=2, cores=2)) == "ok"
    assert status(check_threads(Settings(), threads=None, cores=2)) == "ok"
    assert status(check_threads(Settings(), threads=64, cores=2)) == "warn"
    assert status(check_threads(modelled(threads=2), threads=64, cores=2)) == "ok"
    assert "MODEL__THREADS=2" in check_threads(modelled(threads=3), threads=1, cores=2).fix


def test_cores_of_a_container(tmp_path: Path) -> None:
    free = usable_cores(tmp_path)
    assert free >= 1
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert usable_cores(tmp_path) == free
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert usable_cores(tmp_path) == 1
    (tmp_path / "cpu.max").unlink()
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("-1")
    (tmp_path / "cpu/cpu.cfs_period_us").write_text("100000")
    assert usable_cores(tmp_path) == free


def test_clock() -> None:
    def looked(*, year: int = 2026, step_s: float = 0.0) -> Finding:
        begin_ns, ticks = (year - 1970) * 31_556_952 * S, count()
        return check_clock(
            wall=lambda: begin_ns + int(next(ticks) * step_s * S),
            monotonic=lambda: 0,
            pause=lambda: None,
        )

    assert status(looked()) == "ok"
    assert status(looked(year=1970)) == "fail"
    assert status(looked(step_s=0.5)) == "warn"
    assert status(check_clock(pause=lambda: None)) in ("ok", "warn")


@pytest.mark.parametrize(
    ("total", "free", "expected"),
    [(100, 50, "ok"), (100, 3, "warn"), (100, 0.5, "fail"), (1000, 20, "warn")],
)
def test_disk(total: float, free: float, expected: str) -> None:
    sizes = (int(total * GIB), int((total - free) * GIB), int(free * GIB))
    assert status(check_disk(lambda _: sizes)) == expected


def test_shared_memory(tmp_path: Path) -> None:
    def at(free: int) -> Finding:
        return check_shared_memory(Settings(), folder=tmp_path, usage=lambda _: (free, 0, free))

    assert status(at(2 * GIB)) == "ok"
    assert status(at(64 << 20)) == "warn"
    assert status(check_shared_memory(Settings(), folder=tmp_path / "none")) == "ok"


def test_port(listener: socket.socket) -> None:
    taken = serving(port=port_of(listener))
    asked: list[str] = []
    assert status(check_port(taken, ask=lambda url: asked.append(url))) == "fail"
    assert asked == [f"http://127.0.0.1:{port_of(listener)}"]
    assert "streamer 1.2 runs" in check_port(taken, ask=lambda _: "1.2").fact
    assert status(check_port(serving(port=0), ask=lambda _: None)) == "ok"
    listener.close()
    assert status(check_port(taken, ask=lambda _: None)) == "ok"
    assert status(check_port(serving(host="no.such.host.invalid"), ask=lambda _: None)) == "fail"


def test_nobody_answers() -> None:
    assert running_version("http://127.0.0.1:1") is None


def test_no_proxy_stands_before_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    class Version(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"version": "1.2", "runtime": "local"}')

        def log_message(self, *_: object) -> None:
            pass

    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with HTTPServer(("127.0.0.1", 0), Version) as server:
        answering = threading.Thread(target=server.handle_request)
        server.timeout = 5
        answering.start()
        assert running_version(f"http://127.0.0.1:{server.server_port}") == "1.2"
        answering.join()


def test_access(tmp_path: Path) -> None:
    assert status(check_access(Settings())) == "ok"
    finding = check_access(serving(host="0.0.0.0"))
    assert status(finding) == "fail" and "streamer token new" in finding.fix
    file = tmp_path / "tokens.json"
    gateway = replace(Settings().gateway, tokens_file=str(file))
    settings = serving(host="0.0.0.0").model_copy(update={"gateway": gateway})
    assert status(check_access(settings)) == "fail"
    file.write_text(f"[{new_token('me', ['read'])[1].model_dump_json()}]")
    assert check_access(settings).fact == "tokens: 1, bound to 0.0.0.0"


def test_store() -> None:
    assert status(check_store_answers(Settings())) == "ok"
    store = StoreConfig(url="redis://joe:hunter2@127.0.0.1:1/0")
    finding = check_store_answers(Settings(store=store))
    assert status(finding) == "fail"
    assert "hunter2" not in finding.fact + finding.fix and "joe" not in finding.fact


def test_models(tmp_path: Path) -> None:
    from streamer.models.vjepa2 import VJepa2

    assert status(check_model(Settings())) == "warn"
    assert status(check_model(modelled("/no/such/folder"))) == "fail"
    assert status(check_model(modelled("nobody/has-this"))) == "warn"
    model = VJepa2.from_preset("tiny")
    model.save_pretrained(tmp_path / "mine")
    finding = check_model(modelled(str(tmp_path / "mine")))
    assert status(finding) == "warn" and model.fingerprint in finding.fact
    (tmp_path / "mine" / "model.safetensors").write_bytes(b"cut")
    assert status(check_model(modelled(str(tmp_path / "mine")))) == "fail"


def test_horizons_out_of_reach_say_where_they_come_from(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("horizons_s: [0.5, 99]")
    finding = check_horizons(trace_settings(config=file, environ={}))
    assert finding is not None and status(finding) == "fail"
    assert f"horizons_s (file {file}) holds 99; tiny with 64 frames at 4 fps" in finding.fact
    assert "15.5 s" in finding.fact
    well = check_horizons(trace_settings(environ={}))
    assert well is not None and status(well) == "ok"
    unknown = trace_settings(environ={}, options={"model": {"name": "nobody/has-this"}})
    assert check_horizons(unknown) is None


def test_a_damaged_download_is_seen(tmp_path: Path) -> None:
    content = b"weights"
    blob = tmp_path / hashlib.sha256(content).hexdigest()
    folder = tmp_path / "snapshot"
    folder.mkdir()
    os.symlink(blob, folder / "model.safetensors")
    blob.write_bytes(content)
    assert "damaged (sha256" not in check_model(modelled(str(folder))).fact
    blob.write_bytes(b"other")
    assert "damaged (sha256" in check_model(modelled(str(folder))).fact


def test_errors_become_fact_and_fix() -> None:
    own = failed("x", ConfigError("The port is taken. Take another."), fix="-")
    assert (own.fact, own.fix) == ("The port is taken", "Take another.")
    theirs = failed("x", CapacityError("It said: a. b."), fix="Start it.")
    assert (theirs.fact, theirs.fix) == ("It said: a. b.", "Start it.")


def test_the_needed_codecs_are_known() -> None:
    assert DECODERS.keys() >= software._NEEDED
