"""Files that callers send: what is taken, what is refused, and that neither leaves anything."""

from __future__ import annotations

import asyncio
import io
import json
import socket
from dataclasses import replace

import numpy as np
import pytest
from media_files import corner, write_sound, write_video

from streamer.errors import CapacityError, NumericalError
from streamer.gateway import spool as spool_module
from streamer.gateway.upload_answers import shown, stem_of
from streamer.gateway.upload_config import UploadConfig
from streamer.gateway.uploads import Uploads
from streamer.records import AnticipationReply, Encoded, Sampling, StreamSpec, SurpriseState
from streamer.sources.config import FileConfig

pytestmark = pytest.mark.unit

VIDEO = {"Content-Type": "video/mp4"}
SMALL = StreamSpec(source="", horizons_s=(0.5,), sampling=Sampling(frames=4, fps=4, stride_s=0.5))
WAIT_S = 10.0


class FakeServed:
    """Models that answer at once, or once they are let."""

    def __init__(self, info, *, padding=0):
        self.info = info
        self.go = asyncio.Event()
        self.go.set()
        self.begun = asyncio.Event()
        self.requests = []
        self.error = None
        self._padding = "x" * padding

    async def describe(self):
        return self.info

    async def encode(self, clip):
        self.begun.set()
        await self.go.wait()
        if self.error is not None:
            raise self.error
        return Encoded(latent=clip, queue_ms=0.0, encode_ms=1.0)

    async def anticipate(self, encoded, request):
        self.requests.append(request)
        body = {"type": "anticipation", "stream": request.stream, "clip": request.clip}
        return AnticipationReply(
            seq=request.number,
            prior=None,
            surprise=SurpriseState(),
            body=json.dumps(body | {"padding": self._padding}).encode(),
        )

    async def supersede(self, stream, clip):
        raise AssertionError("nothing of a file is superseded")

    async def latents(self, clip, *, context_ids=None, target_ids=None, start_s=0.0):
        return json.dumps([list(clip.frames.shape), context_ids, target_ids, start_s]).encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("videos")


@pytest.fixture(scope="module")
def video(folder):
    """3 s: 12 frames at 4 fps, 5 clips of 4 frames every half second."""
    path = write_video(folder / "ramp.mp4", [corner()] * 30, fps=10)
    return path.read_bytes()


class Desk:
    """A gateway that takes files, and the models behind it."""

    def __init__(self, make_gateway, tmp_path, *, padding=0, files=None, **bounds):
        self.spools = tmp_path / "spools"
        self.spools.mkdir()
        self.served = FakeServed(replace(make_gateway.info, crop=32), padding=padding)
        config = UploadConfig(folder=str(self.spools), **bounds)
        self.uploads = Uploads(lambda: self.served, config=config, files=files)
        self.gateway = make_gateway(uploads=self.uploads, defaults=SMALL)

    def http(self):
        return self.gateway.http()

    async def post(self, path="/v1/anticipations", **request):
        await self.gateway.announce(model=self.served.info)
        async with self.http() as http:
            return await http.post(path, **request)

    async def is_idle(self):
        async with asyncio.timeout(WAIT_S):
            while self.uploads.active:  # noqa: ASYNC110 - it tells no event
                await asyncio.sleep(0.01)

    def count(self, outcome, what="anticipations"):
        text = self.gateway.backend.metrics.exposition().decode()
        row = f'streamer_uploads_total{{outcome="{outcome}",what="{what}"}} '
        return float(text.split(row)[1].split("\n")[0])


@pytest.fixture
def desk(make_gateway, tmp_path):
    return Desk(make_gateway, tmp_path)


@pytest.fixture
def make_desk(make_gateway, tmp_path):
    return lambda **bounds: Desk(make_gateway, tmp_path, **bounds)


def lines(answer):
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


async def test_a_file_comes_back_as_events(desk, video):
    answer = await desk.post(content=video, headers=VIDEO, params={"name": "yard cam"})
    events = lines(answer)
    assert [e["id"] for e in events] == [f"upload:{n}" for n in range(1, len(events) + 1)]
    assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
    assert [e["type"] for e in events] == [
        "stream.state",
        "stream.state",
        *["anticipation"] * 5,
        "stream.state",
    ]
    assert (events[0]["state"], events[-1]["state"], events[-1]["reason"]) == (
        "starting",
        "ended",
        "eof",
    )
    assert {e["stream"] for e in events} == {"yard cam"}
    anticipations = [e["seq"] for e in events if e["type"] == "anticipation"]
    assert [r.number for r in desk.served.requests] == anticipations
    assert await desk.gateway.store.list_streams() == []
    assert (desk.count("done"), desk.uploads.active) == (1, 0)


@pytest.mark.parametrize(
    ("filename", "stream"),
    [
        ("clip.mp4", "clip"),
        ("../../etc/passwd", "passwd"),
        ("C:\\videos\\door.mov", "door"),
        ("/absolute/path/x.y.mkv", "x.y"),
        (".mp4", ".mp4"),
        ("n" * 3000 + ".mp4", "n" * 64),
    ],
    ids=lambda text: text[:12],
)
async def test_a_form_with_options(desk, video, filename, stream):
    form = {"horizons_s": "0.5,1", "stride_s": "1"}
    answer = await desk.post(files={"file": (filename, video)}, data=form)
    events = lines(answer)
    assert {e["stream"] for e in events} == {stream}
    assert desk.served.requests[0].horizons_s == (0.5, 1.0)
    assert len(desk.served.requests) == 3
    assert list(desk.spools.iterdir()) == []


def test_names_of_files_are_made_harmless():
    assert stem_of("a\x07b\n.mp4") == "ab"
    assert (stem_of(""), stem_of("/"), shown("/")) == ("upload", "upload", "The upload")


async def test_the_query_and_then_the_form(desk, video):
    params = {"stride_s": "1", "horizons_s": ["0.5", "1"]}
    await desk.post(files={"file": ("x", video)}, data={"stride_s": "1.5"}, params=params)
    assert len(desk.served.requests) == 2
    assert desk.served.requests[0].horizons_s == (0.5, 1.0)


PLAYLIST = b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n"
CONCAT = b"ffconcat version 1.0\nfile '/etc/passwd'\n"
SESSION = b"v=0\no=- 0 0 IN IP4 127.0.0.1\nc=IN IP4 127.0.0.1\nm=video 5004 RTP/AVP 96\n"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "source_unsupported"),
        (b"hello\n" * 100, "source_unsupported"),
        (PLAYLIST, "source_unsupported"),
        (CONCAT, "source_unsupported"),
        (SESSION, "source_unsupported"),
        (bytes(5000), "source_unsupported"),
    ],
    ids=["empty", "text", "playlist", "concat", "session", "zeros"],
)
async def test_what_is_no_video(desk, content, code):
    for request in ({"content": content, "headers": VIDEO}, {"files": {"file": ("x", content)}}):
        answer = await desk.post(**request)
        assert (answer.status_code, answer.json()["code"]) == (415, code), answer.text
        assert "/proc" not in answer.text and "/etc/passwd" not in answer.text
    assert desk.count("refused") == 2


async def test_a_video_cut_short_is_refused_or_told(desk, folder, video):
    headless = await desk.post(content=video[: len(video) // 2], headers=VIDEO)  # its index is last
    assert headless.status_code == 415
    noise = np.random.default_rng(0).integers(0, 256, (30, 48, 64, 3), dtype=np.uint8)
    whole = write_video(folder / "x.mkv", noise, fps=10).read_bytes()
    cut = lines(await desk.post(content=whole[: len(whole) * 2 // 3], headers=VIDEO))
    assert (cut[-1]["state"], cut[-1]["reason"]) == ("ended", "damaged")


async def test_sound_alone_is_refused(desk, folder):
    sound = write_sound(folder / "s.mp4").read_bytes()
    assert (await desk.post(content=sound, headers=VIDEO)).status_code == 415


async def test_pictures_too_large_and_videos_too_long(make_desk, video):
    desk = make_desk(files=FileConfig(max_pixels=100), max_video_s=2.0)
    assert (await desk.post(content=video, headers=VIDEO)).json()["code"] == "source_unsupported"
    desk.uploads.files = FileConfig()
    answer = await desk.post(content=video, headers=VIDEO)
    assert (answer.status_code, answer.json()["code"]) == (422, "video_too_long")


@pytest.mark.parametrize(
    ("params", "status", "field"),
    [
        ({"fsp": "4"}, 422, "fsp"),
        ({"fps": "fast"}, 422, "fps"),
        ({"fps": "0"}, 422, "fps"),
        ({"horizons_s": "soon"}, 422, "horizons_s.0"),
        ({"horizons_s": ""}, 422, "horizons_s.0"),
        ({"mode": "sideways"}, 422, "mode"),
        ({"name": "a\nb"}, 422, "name"),
        ({"frames": "3"}, 400, None),
        ({"frames": "4000"}, 400, None),
        ({"stride_s": "0.3"}, 400, None),
        ({"horizons_s": "99"}, 422, None),
    ],
    ids=str,
)
async def test_options_that_cannot_be(desk, video, params, status, field):
    asked = [
        await desk.post(content=video, headers=VIDEO, params=params),
        await desk.post(files={"file": ("x", video)}, data=params),
    ]
    for answer in asked:
        assert answer.status_code == status, answer.text
        if field is not None:
            assert answer.json()["errors"][0]["field"] == field
    assert desk.served.requests == []


async def test_a_wrong_name_is_answered_with_a_right_one(desk, video):
    answer = await desk.post(content=video, headers=VIDEO, params={"strides": "1"})
    assert "did you mean stride_s?" in answer.json()["detail"]


B = b"--frontier\r\n"
FILE = b'Content-Disposition: form-data; name="file"; filename="x"\r\n\r\n'
TEXT = b'Content-Disposition: form-data; name="fps"\r\n\r\n'


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no form at all",
        B + TEXT + b"4\r\n--frontier--\r\n",
        B + FILE + b"cut off",
        B + FILE + b"1\r\n" + B + FILE + b"2\r\n--frontier--\r\n",
        B + TEXT + b"4\r\n" + B + TEXT + b"4\r\n" + B + FILE + b"1\r\n--frontier--\r\n",
        B + TEXT + b"9" * 70_000 + b"\r\n--frontier--\r\n",
        B + TEXT + b"\xff\r\n" + B + FILE + b"1\r\n--frontier--\r\n",
        B + b"X-Long: " + b"y" * 10_000 + b"\r\n\r\n1\r\n--frontier--\r\n",
    ],
    ids=["empty", "noise", "no-file", "cut", "two", "twice", "long", "bytes", "header"],
)
async def test_forms_that_cannot_be(desk, body):
    headers = {"Content-Type": "multipart/form-data; boundary=frontier"}
    answer = await desk.post(content=body, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request"), answer.text
    assert desk.count("refused") == 1


async def test_names_that_begin_alike_do_not_get_around_the_count_of_fields(desk):
    names = (TEXT.replace(b"fps", b"f" * 80 + b"%d" % number) for number in range(2))
    body = B.join([b"", *(name + b"4\r\n" for name in names), FILE + b"1\r\n--frontier--\r\n"])
    headers = {"Content-Type": "multipart/form-data; boundary=frontier"}
    answer = await desk.post(content=body, headers=headers)
    assert "stands twice in this form" in answer.json()["detail"]


async def test_other_bodies(desk, video):
    for kind in ("text/plain", "application/json", "application/x-www-form-urlencoded", ""):
        answer = await desk.post(content=video, headers={"Content-Type": kind})
        assert answer.status_code == 415
        assert "video/mp4" in answer.json()["detail"]
    answer = await desk.post(content=video, headers={"Content-Type": "multipart/form-data"})
    assert answer.status_code == 422


async def test_a_file_too_large(make_desk, video):
    desk = make_desk(max_bytes=len(video) - 1)

    async def pieces():
        yield video[:1000]
        yield video[1000:]

    for content in (video, pieces()):
        answer = await desk.post(content=content, headers=VIDEO)
        assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")
    assert desk.count("refused") == 2
    huge = await desk.post(content=b"", headers=VIDEO | {"Content-Length": "99999999999"})
    assert huge.status_code == 413


async def test_elsewhere_bodies_stay_small(desk):
    answer = await desk.post("/v1/streams", content=bytes(70_000))
    assert answer.status_code == 413


async def test_a_full_disk(desk, video, monkeypatch):
    def full(**_):
        return open("/dev/full", "wb", buffering=0)

    monkeypatch.setattr(spool_module.tempfile, "TemporaryFile", full)
    answer = await desk.post(content=video, headers=VIDEO)
    assert (answer.status_code, answer.json()["code"]) == (507, "no_room_on_disk")
    assert answer.json()["retryable"] is True


async def test_a_system_that_takes_a_part_gets_the_rest(tmp_path, monkeypatch):
    class Stingy(io.FileIO):
        def write(self, data):
            return super().write(bytes(data)[:1000])

    monkeypatch.setattr(
        spool_module.tempfile, "TemporaryFile", lambda **_: Stingy(tmp_path / "x", "w+")
    )
    sent = bytes(range(256)) * 20
    with spool_module.opened_spool("") as spool:
        await spool.write(sent)
        await spool.flush()
        assert spool.head(len(sent)) == sent


async def test_a_folder_that_is_not_there(make_desk, video):
    desk = make_desk()
    desk.spools.rmdir()
    answer = await desk.post(content=video, headers=VIDEO)
    assert answer.status_code == 503
    assert "uploads.folder" in answer.json()["detail"]


async def test_no_more_than_so_many_at_once(make_desk, video):
    desk = make_desk(max_concurrent=1)
    desk.served.go.clear()
    first = asyncio.ensure_future(desk.post(content=video, headers=VIDEO))
    async with asyncio.timeout(WAIT_S):
        await desk.served.begun.wait()
    assert list(desk.spools.iterdir()) == []  # it has no name
    second = await desk.post(content=video, headers=VIDEO)
    assert (second.status_code, second.json()["code"]) == (429, "too_many_uploads")
    assert int(second.headers["Retry-After"]) >= 1
    desk.served.go.set()
    assert lines(await first)[-1]["state"] == "ended"


async def test_models_that_are_busy_are_waited_for(desk, video):
    desk.served.error = CapacityError("full", 0.01)
    asking = asyncio.ensure_future(desk.post(content=video, headers=VIDEO))
    async with asyncio.timeout(WAIT_S):
        await desk.served.begun.wait()
    desk.served.error = None
    assert len([e for e in lines(await asking) if e["type"] == "anticipation"]) == 5


async def test_what_goes_wrong_later_is_the_last_line(desk, video):
    desk.served.error = NumericalError("The latent of this clip is not finite.")
    events = lines(await desk.post(content=video, headers=VIDEO))
    assert (events[-2]["type"], events[-2]["state"]) == ("stream.state", "failed")
    assert (events[-1]["type"], events[-1]["code"]) == ("error", "numerical")
    assert "not finite" in events[-1]["message"]
    assert desk.count("refused") == 1


async def test_no_models_yet(desk, video):
    async with desk.http() as http:
        answer = await http.post("/v1/anticipations", content=video, headers=VIDEO)
    assert (answer.status_code, answer.json()["code"]) == (503, "capacity")


async def test_a_gateway_without_models_says_so(http, video):
    for path in ("/v1/anticipations", "/v1/latents"):
        answer = await http.post(path, content=bytes(100_000), headers=VIDEO)
        assert (answer.status_code, answer.json()["code"]) == (501, "not_offered_here")


async def test_a_gateway_that_stops_says_so(desk, video):
    desk.served.go.clear()
    asking = asyncio.ensure_future(desk.post(content=video, headers=VIDEO))
    async with asyncio.timeout(WAIT_S):
        await desk.served.begun.wait()
    desk.gateway.backend.draining.set()
    last = lines(await asking)[-1]
    assert (last["type"], last["code"], last["retryable"]) == ("error", "capacity", True)
    later = await desk.post(content=video, headers=VIDEO)
    assert (later.status_code, later.json()["code"]) == (503, "capacity")


# on a real socket -------------------------------------------------------------------------------
def head(length, *, path="/v1/anticipations"):
    return (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: video/mp4\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


async def opened(place, *, receive_bytes=None):
    host, _, port = place.rpartition(":")
    raw = socket.socket()
    if receive_bytes is not None:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    raw.setblocking(False)
    await asyncio.get_running_loop().sock_connect(raw, (host, int(port)))
    return await asyncio.open_connection(sock=raw, limit=2**14)


async def test_a_sender_that_stops_is_given_up(make_desk, video):
    desk = make_desk(stall_s=0.2)
    async with desk.gateway.served() as place:
        reader, writer = await opened(place)
        writer.write(head(len(video)) + video[:100])
        async with asyncio.timeout(WAIT_S):
            answer = await reader.read()  # and the connection is closed
        writer.close()
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"upload_stalled" in answer
    assert (desk.uploads.active, desk.count("refused")) == (0, 1)


async def test_a_sender_that_drips_is_given_up(make_desk, video):
    desk = make_desk(stall_s=0.2, min_bytes_per_s=1000)
    async with desk.gateway.served() as place:
        reader, writer = await opened(place)
        writer.write(head(len(video)))

        async def drip():
            while True:
                writer.write(b"x")
                await asyncio.sleep(0.02)

        dripping = asyncio.ensure_future(drip())
        async with asyncio.timeout(WAIT_S):
            answer = await reader.readline()
        dripping.cancel()
        writer.close()
    assert answer.startswith(b"HTTP/1.1 408 ")


async def test_a_sender_that_leaves_is_forgotten(desk, video):
    async with desk.gateway.served() as place:
        _, writer = await opened(place)
        writer.write(head(len(video)) + video[:100])
        await writer.drain()
        writer.close()
        async with asyncio.timeout(WAIT_S):
            while desk.count("left") < 1:  # noqa: ASYNC110 - it tells no event
                await asyncio.sleep(0.01)
    assert desk.uploads.active == 0


async def test_a_caller_that_leaves_ends_the_work(desk, video):
    desk.served.go.clear()
    await desk.gateway.announce(model=desk.served.info)
    async with desk.gateway.served() as place:
        reader, writer = await opened(place)
        writer.write(head(len(video)) + video)
        async with asyncio.timeout(WAIT_S):
            assert b"200 OK" in await reader.readline()
            await desk.served.begun.wait()
        writer.close()
        async with asyncio.timeout(1.0):
            while desk.uploads.active:  # noqa: ASYNC110 - it tells no event
                await asyncio.sleep(0.01)
    assert desk.served.requests == []
    assert desk.count("left") == 1


async def test_a_reader_that_stops_costs_no_memory_and_is_cut(make_desk, folder):
    desk = make_desk(padding=100_000, stall_s=0.4)
    long = write_video(folder / "long.mp4", [corner()] * 400, fps=4).read_bytes()  # 196 clips
    await desk.gateway.announce(model=desk.served.info)
    async with desk.gateway.served() as place:
        reader, writer = await opened(place, receive_bytes=4096)
        writer.write(head(len(long)) + long)
        async with asyncio.timeout(WAIT_S):
            assert b"200 OK" in await reader.readline()
        writer.transport.pause_reading()
        await desk.is_idle()
        made = len(desk.served.requests)
        writer.close()
    # 8 wait here; the rest lies in the kernel's buffers, of which a loopback has a few MB.
    assert made < 120
    assert (desk.uploads.active, desk.count("left")) == (0, 1)


@pytest.mark.parametrize(
    ("form", "size", "words"),
    [
        (b'form-data; name="video"; filename="v.mp4"', 1, "There is no part 'video' here; name"),
        (b'form-data; name="video"', 70_000, "The part 'video' has more than 65536 bytes"),
    ],
)
async def test_a_file_under_another_name_is_told_which(desk, form, size, words):
    head = b"--frontier\r\nContent-Disposition: " + form + b"\r\n\r\n"
    body = head + b"x" * size + b"\r\n--frontier--\r\n"
    headers = {"Content-Type": "multipart/form-data; boundary=frontier"}
    answer = await desk.post(content=body, headers=headers)
    assert answer.status_code == 422
    assert words in answer.json()["detail"]
    assert "name" in answer.json()["detail"] and "'file'" in answer.json()["detail"]
