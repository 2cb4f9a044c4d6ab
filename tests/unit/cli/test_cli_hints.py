"""What commands tell people to type must work as it stands."""

from __future__ import annotations

import io
import ssl
from pathlib import Path

import httpx2
import pytest

from streamer.cli.client import ServerUnreachable
from streamer.cli.output import DEFAULT_SERVER, place_options, watch_command, wrapped
from streamer.cli.upload import Uploader
from streamer.gateway.server import base_url, bound_socket

pytestmark = pytest.mark.unit


def test_a_hint_says_server_and_token_where_they_are_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("STREAMER_TOKEN", raising=False)
    assert watch_command("cam", server=DEFAULT_SERVER) == "streamer watch cam"
    assert place_options("http://h", has_tokens=True) == " --server http://h --token TOKEN"
    monkeypatch.setenv("STREAMER_TOKEN", "x")
    assert place_options(DEFAULT_SERVER, has_tokens=True) == ""


def test_a_line_is_broken_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", "20")
    line = "demo #4  surprise 1.110  [untrained]  http://h:8000/a/long/one"
    assert wrapped(line, stream=io.StringIO()) == line
    broken = wrapped(line, stream=Terminal()).splitlines()
    assert any(part.strip().endswith("[untrained]") for part in broken)
    assert broken[-1].strip() == "http://h:8000/a/long/one"


def test_all_addresses_are_no_address_to_go_to() -> None:
    with bound_socket("0.0.0.0", 0) as bound:
        assert base_url(bound).startswith("http://127.0.0.1:")


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number", "no TLS; write http://h:8000"),
        ("[SSL] record layer failure (_ssl.c:1006)", "no TLS; write http://h:8000"),
        ("certificate verify failed: self-signed certificate", "not trusted"),
        ("Connection refused", "Start a server"),
    ],
)
def test_why_a_server_is_not_reached(reason: str, says: str, tmp_path: Path) -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError(reason) from ssl.SSLError(reason)

    transport = httpx2.MockTransport(refuse)
    clip = tmp_path / "clip.mp4"
    clip.write_bytes(b"x")
    with Uploader("https://h:8000", transport=transport) as client:
        with pytest.raises(ServerUnreachable, match=says):
            client.stream("cam")
        with pytest.raises(ServerUnreachable, match=says):
            client.latents(clip, query={})
