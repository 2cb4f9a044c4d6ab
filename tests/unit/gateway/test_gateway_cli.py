"""The commands against a real server."""

from __future__ import annotations

import asyncio
import io
import json
from itertools import islice

import pytest
from rich.console import Console
from typer.testing import CliRunner
from websockets.asyncio.server import serve

from streamer.backoff import Backoff
from streamer.cli.client import Client, ServerUnreachable
from streamer.cli.follow import Follower
from streamer.cli.main import app, exit_code
from streamer.cli.panel import StreamPanel, bar, sparkline
from streamer.cli.watch import asked_after, split_target
from streamer.errors import ConfigError, NotFound, StreamerError

pytestmark = pytest.mark.unit

QUICK = Backoff(first_s=0.01, cap_s=0.05, max_tries=4)


async def _run(*args, host="127.0.0.1:9"):
    """Exit code, stdout, stderr."""
    result = await asyncio.to_thread(
        CliRunner().invoke, app, list(args), env={"STREAMER_SERVER": f"http://{host}"}
    )
    code = result.exit_code
    if isinstance(result.exception, StreamerError):
        code = exit_code(result.exception)
    return code, result.stdout, result.stderr + str(result.exception or "")


async def test_life_of_a_stream(gateway):
    await gateway.announce()
    async with gateway.served() as host:
        source = "rtsp://joe:hunter2@192.0.2.7/main"
        options = ["--horizons", "0.3,1", "--fps", "8", "--stride", "0.5", "--frames", "32"]
        code, out, _ = await _run("streams", "add", source, "--id", "cam", *options, host=host)
        view = json.loads(out)
        assert code == 0
        assert "hunter2" not in out
        assert view["sampling"] == {"frames": 32, "fps": 8.0, "stride_s": 0.5}
        assert view["horizons_s"] == [0.5, 1.0]
        assert (
            json.loads((await _run("streams", "pause", "cam", host=host))[1])["desired"] == "paused"
        )
        assert (
            json.loads((await _run("streams", "continue", "cam", host=host))[1])["desired"]
            == "live"
        )
        changes = ["--source", "synthetic:bounce", "--horizons", "2", "--mode", "gap", "--fps", "4"]
        view = json.loads((await _run("streams", "set", "cam", *changes, host=host))[1])
        assert (view["source"], view["mode"], view["horizons_s"]) == (changes[1], "gap", [2.0])
        assert view["sampling"] == {"frames": 32, "fps": 4.0, "stride_s": 0.5}
        await _run("streams", "set", "cam", "--source", source, host=host)
        _, out, _ = await _run("streams", "ls", host=host)
        assert [each["id"] for each in json.loads(out)] == ["cam"]
        _, out, _ = await _run("streams", "ls", "--output", "table", host=host)
        assert "cam" in out
        assert "rtsp://***@192.0.2.7/main" in out
        _, out, _ = await _run("streams", "show", "cam", "--output", "table", host=host)
        assert "horizons_s" in out
        code, out, err = await _run("streams", "rm", "cam", host=host)
        assert (code, out) == (0, "")
        assert "removed cam" in err
        _, out, _ = await _run("streams", "ls", "--output", "table", host=host)
        assert "streamer streams add" in out


async def test_plain_path_becomes_a_file_url(gateway, tmp_path):
    await gateway.announce()
    video = tmp_path / "a b.mp4"
    video.touch()
    async with gateway.served() as host:
        code, _, err = await _run("streams", "add", str(video), host=host)
        assert code == 1
        assert "is not below an allowed folder" in err or "not allowed" in err
        code, _, err = await _run("streams", "add", str(tmp_path / "none.mp4"), host=host)
        assert code == 2
        assert "There is no file" in err


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["streams", "show", "none"], 4),
        (["streams", "rm", "../models"], 4),
        (["watch", "none"], 4),
        (["streams", "add", "synthetic:x", "--horizons", "a"], 2),
        (["streams", "add", "synthetic:x", "--stride", "0.7"], 2),
        (["streams", "add", "synthetic:x", "--horizons", "99"], 2),
        (["streams", "add"], 2),
        (["streams", "set", "none", "--horizons", "1"], 4),
        (["streams", "set", "none"], 2),
        (["watch", "http://host/other"], 2),
        (["watch", "cam", "--after", "xyz"], 2),
        (["streams", "ls", "--server", "ftp://x"], 2),
        (["streams", "ls", "--server", "http://127.0.0.1:9"], 3),
        (["watch", "cam", "--server", "http://127.0.0.1:9"], 3),
    ],
)
async def test_exit_codes(gateway, args, code):
    await gateway.announce()
    async with gateway.served() as host:
        assert (await _run(*args, host=host))[0] == code


async def test_watch_prints_events_until_the_stream_ends(gateway):
    lease = await gateway.stream()
    await gateway.append(2)
    ended = b'{"type":"stream.state","stream":"cam","state":"ended","reason":"eof"}'
    await gateway.store.append("cam", lease=lease.token, body=ended)
    await gateway.store.finish_stream("cam", lease=lease.token, outcome="ended")
    async with gateway.served() as host:
        target = f"ws://{host}/v1/streams/cam/feed"
        code, out, _ = await _run("watch", target, "--after", "0")
        assert code == 0
        assert [json.loads(line)["seq"] for line in out.splitlines()] == [1, 2, 3]
        code, out, err = await _run("watch", "cam", host=host)
        assert (code, out) == (0, "")
        assert "--after 0" in err


async def test_no_proxy_stands_before_this_machine(gateway, monkeypatch):
    lease = await gateway.stream()
    ended = b'{"type":"stream.state","stream":"cam","state":"ended","reason":"eof"}'
    await gateway.store.append("cam", lease=lease.token, body=ended)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    async with gateway.served() as host:
        code, out, _ = await _run("watch", "cam", "--after", "0", host=host)
    assert (code, json.loads(out)["state"]) == (0, "ended")


async def test_watch_fails_with_the_stream(gateway):
    lease = await gateway.stream()
    body = b'{"type":"stream.state","stream":"cam","state":"failed","reason":"unauthorized"}'
    await gateway.store.append("cam", lease=lease.token, body=body)
    async with gateway.served() as host:
        code, _, err = await _run("watch", "cam", "--after", "0", host=host)
    assert code == 1
    assert "unauthorized" in err


async def test_follower_resumes_where_it_was_cut(gateway):
    await gateway.stream()
    await gateway.append(3)
    notices, cut, loop = [], asyncio.Event(), asyncio.get_running_loop()

    def notice(text):
        notices.append(text)
        loop.call_soon_threadsafe(cut.set)

    async with gateway.served() as host:
        follower = Follower(f"http://{host}", "cam", after="0", notice=notice, retry=QUICK)
        messages = follower.messages()

        def take(count):
            events = (m.fields["seq"] for m in messages if "seq" in m.fields)
            return list(islice(events, count))

        assert await asyncio.to_thread(take, 3) == [1, 2, 3]
        gateway.backend.draining.set()
        taking = asyncio.create_task(asyncio.to_thread(take, 2))
        await asyncio.wait_for(cut.wait(), 5)
        gateway.backend.draining.clear()
        await gateway.append(2)
        assert await taking == [4, 5]
        assert follower.cursor == "e1:5"
        await asyncio.to_thread(messages.close)
    assert "1012" in notices[0]
    assert "e1:3" in notices[0]


async def test_follower_gives_up_at_last(gateway):
    await gateway.stream()
    notices = []
    async with gateway.served() as host:
        follower = Follower(f"http://{host}", "cam", notice=notices.append, retry=QUICK)
        messages = follower.messages()
        assert (await asyncio.to_thread(next, messages)).type == "session.created"
        gateway.backend.draining.set()
        with pytest.raises(ServerUnreachable):
            await asyncio.to_thread(list, messages)
    assert len(notices) == 3


async def test_follower_waits_a_while_for_a_stream_it_had_followed():
    closes = iter([1012, 4404, 4404, 4404, 4404])
    head = {"streams": [{"epoch": "e1", "head_seq": 0}]}

    async def feed(socket):
        code = next(closes)
        if code == 1012:
            await socket.send(json.dumps({"type": "session.created", **head}))
        await socket.close(code, "no stream cam")

    notices = []
    async with serve(feed, "127.0.0.1", 0, subprotocols=["streamer.v1"]) as server:
        host, port = server.sockets[0].getsockname()
        follower = Follower(
            f"http://{host}:{port}", "cam", notice=notices.append, retry=QUICK, absent=QUICK
        )
        with pytest.raises(NotFound):
            await asyncio.wait_for(asyncio.to_thread(list, follower.messages()), 10)
    assert [("1012" in notice, "no stream cam" in notice) for notice in notices] == [
        (True, True), (False, True), (False, True), (False, True)
    ]  # fmt: skip
    assert next(closes, None) is None


async def test_follower_of_nothing_fails_at_once():
    follower = Follower("http://127.0.0.1:9", "cam", notice=pytest.fail, retry=QUICK)
    with pytest.raises(ServerUnreachable):
        await asyncio.to_thread(list, follower.messages())


async def test_somebody_else_answers():
    async def hello(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(hello, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with Client(f"http://127.0.0.1:{port}") as client, pytest.raises(ServerUnreachable):
            await asyncio.to_thread(client.stream, "cam")


@pytest.mark.parametrize(
    ("target", "server", "stream"),
    [
        ("cam", "http://default", "cam"),
        ("http://h:8000/v1/streams/cam", "http://h:8000", "cam"),
        ("wss://h/base/v1/streams/cam/feed", "https://h/base", "cam"),
    ],
)
def test_targets(target, server, stream):
    assert split_target(target, server="http://default") == (server, stream)


def test_a_url_says_where_to_go_on():
    feed = "ws://h/v1/streams/cam/feed"
    assert [asked_after(each) for each in ("cam", feed, f"{feed}?after=7f3a:12")] == [
        *(None, None),
        "7f3a:12",
    ]
    with pytest.raises(ConfigError, match="not types"):
        asked_after(f"{feed}?types=surprise&after=0")


@pytest.mark.parametrize("server", ["http://[", "http://h:x", "http://h:99999"])
def test_bad_server(server):
    with pytest.raises(ConfigError, match="--server"):
        Client(server)
    with pytest.raises(ConfigError):
        Client(split_target(f"{server}/v1/streams/cam", server="http://default")[0])


def test_bad_target():
    with pytest.raises(ConfigError):
        split_target("rtsp://h/v1/streams/cam", server="http://default")
    with pytest.raises(NotFound):
        Client("http://h").stream("a/b")


def _event(seq, *, surprise):
    return {
        "type": "anticipation", "seq": seq, "notes": ["untrained"],
        "present": {"action": [{"label": "[hold]", "score": 0.6}]},
        "window": {"end": "2026-12-01T09:00:03.300000Z", "frames": 64, "fps": 4.0, "dropped": 1},
        "futures": [
            {"horizon_s": 0.5, "end": "2026-12-01T09:00:03.8Z", "heads": {}, "drift": 0.08}
        ],
        "surprise": surprise and {"value": surprise, "z": 1.5},
        "latency_ms": {"queue": 1.0, "encode": 52.0, "rollout": 24.0, "total": 112.0},
        "model": {"name": "tiny", "trained": False},
    }  # fmt: skip


def test_panel_shows_what_the_feed_said():
    panel = StreamPanel("cam", state="starting")
    console = Console(width=100, record=True, file=io.StringIO())
    panel.take({"type": "session.created"})
    state = {"type": "stream.state", "state": "live", "reason": "filling"}
    panel.take(state | {"have": 3, "need": 64})
    panel.take({"type": "something.new"})
    console.print(panel.render())
    text = console.export_text()
    assert "cam  live (filling 3/64 frames)" in text
    assert "waiting for the first anticipation" in text
    panel.take(_event(7, surprise=None))
    panel.take(_event(8, surprise=0.113))
    panel.take({"type": "gap", "from_seq": 9, "to_seq": 11, "reason": "slow_subscriber"})
    console.print(panel.render())
    text = console.export_text()
    for words in ("#8", "untrained", "[hold] 60%", "+0.5 s", "0.080", "0.113 (z +1.5)",
                  "encode 52 ms", "3 events not received"):  # fmt: skip
        assert words in text
    panel.take({"type": "gap", "from_seq": 1, "to_seq": 0, "reason": "restart"})
    console.print(panel.render())
    assert "began anew" in console.export_text()


def test_panel_tells_what_is_not_alive():
    panel = StreamPanel("cam", state="live")
    console = Console(width=100, record=True, file=io.StringIO())
    plain = _event(7, surprise=None)
    plain["present"] = {}
    panel.take(plain)
    panel.lose("reconnecting to http://h ...")
    console.print(panel.render())
    text = console.export_text()
    assert "cam  reconnecting to http://h ... (0 s)" in text
    assert "live" not in text
    assert "WHAT" not in text
    panel.take({"type": "stream.state", "state": "failed", "reason": "refused", "retry_in_s": 30.0})
    console.print(panel.render())
    assert "cam  failed (refused), next try in 30 s" in console.export_text()


def test_bars_and_sparks():
    assert bar(1, largest=2, chars=4) == "██"
    assert bar(0, largest=0) == ""
    assert sparkline([]) == ""
    assert sparkline([0, 1]) == "▁█"
    assert sparkline([5, 5]) == "▁▁"


async def test_several_streams_are_removed_at_once(gateway):
    for stream in ("a", "b"):
        await gateway.stream(stream)
    async with gateway.served() as host:
        command = ["streams", "rm", "a", "none", "b", "--server", f"http://{host}"]
        done = await asyncio.to_thread(CliRunner().invoke, app, command)
    assert done.stderr.split("\n")[:2] == ["removed a", "removed b"]
    assert isinstance(done.exception, NotFound) and "none" in str(done.exception)
