"""What can be told before Ray starts, and what signals do."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from deployments.launch import Interrupted, Stop, serve_ray, stopping_on_signals
from deployments.launch import _reasons as reasons
from deployments.launch import _shown as shown
from deployments.launch import _until as until
from deployments.launch import _wait_ready as wait_ready
from deployments.preflight import check_model_name, usable_port
from streamer.errors import ConfigError, NotFound
from streamer.layout import LayoutConfig
from streamer.settings import load_settings
from streamer.store.protocol import Store

pytestmark = pytest.mark.unit


async def never(_store: Store, _url: str) -> None:
    raise AssertionError("it is not ready")


def test_a_taken_port_is_refused_with_a_way_out() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        settings = load_settings(options={"server": {"port": port}}, environ={})
        with pytest.raises(ConfigError, match=f"Port {port} .*--port"):
            serve_ray(settings, on_ready=never)


def test_strangers_need_a_token() -> None:
    settings = load_settings(options={"server": {"host": "0.0.0.0", "port": 0}}, environ={})
    with pytest.raises(ConfigError, match="access tokens"):
        serve_ray(settings, on_ready=never)


def test_port_zero_is_a_free_one() -> None:
    assert usable_port("127.0.0.1", 0) > 1024


def test_an_address_that_is_not_ours_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"192\.0\.2\.77"):
        usable_port("192.0.2.77", 8123)


def test_a_model_name_is_checked_before_ray_starts() -> None:
    check_model_name("tiny")
    check_model_name("facebook/vjepa2-vitl-fpc64-256")
    with pytest.raises(NotFound, match="Did you mean 'vitl'"):
        check_model_name("vitll")
    settings = load_settings(
        options={"server": {"port": 0}, "model": {"name": "nonsense"}}, environ={}
    )
    with pytest.raises(NotFound, match="nonsense"):
        serve_ray(settings, on_ready=never)


def test_why_it_is_not_ready_is_a_sentence() -> None:
    body = b'{"checks": [{"name": "encoder", "ok": false, "reason": "no replica"},'
    body += b' {"name": "store", "ok": true, "reason": "reachable"}]}'
    assert reasons(body) == "encoder: no replica"
    assert reasons(b"<html>") == "<html>"


@pytest.mark.parametrize(
    ("host", "expected"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::1", "[::1]")]
)
def test_hosts_in_urls(host: str, expected: str) -> None:
    assert shown(host) == expected


def test_no_proxy_stands_before_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ready(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with HTTPServer(("127.0.0.1", 0), Ready) as server:
        server.timeout = 5
        answering = threading.Thread(target=server.handle_request)
        answering.start()
        wait_ready(f"http://127.0.0.1:{server.server_port}", timeout_s=2.0)
        answering.join()


def test_a_signal_while_starting_interrupts() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted), stopping_on_signals() as stop, stop.raising():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_signal_while_ray_starts_interrupts_after_that() -> None:
    with stopping_on_signals() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.requested.wait(5)
        with pytest.raises(Interrupted), stop.raising():
            raise AssertionError("nothing is deployed any more")


async def test_a_signal_while_running_ends_what_runs_beside() -> None:
    ended = asyncio.Event()

    async def beside() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    with stopping_on_signals() as stop:
        async with asyncio.timeout(10):
            await until(stop, beside())
    assert ended.is_set()


async def test_an_error_beside_ends_the_wait() -> None:
    async def beside() -> None:
        raise ConfigError("It cannot work.")

    with pytest.raises(ConfigError):
        await until(Stop(), beside())


@pytest.mark.parametrize(
    "wrong",
    [
        {"encoder_replicas": 0},
        {"edge_replicas": 0},
        {"encoder_replicas": 2},
        {"encoder_max_replicas": 2},
        {"placement": "split", "encoder_replicas": 3, "encoder_max_replicas": 2},
        {"encoder_gpus": -1.0},
        {"object_store_mb": 10},
        {"ready_s": 0.0},
    ],
    ids=str,
)
def test_layouts_that_cannot_work(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=r"ray\."):
        LayoutConfig(**wrong)  # type: ignore[arg-type]
