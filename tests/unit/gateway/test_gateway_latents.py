"""`POST /v1/latents`: which clip of what was sent, and which tokens of it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import numpy as np
import pytest
from media_files import corner, write_video
from safetensors.numpy import save

from streamer.gateway.upload_config import UploadConfig
from streamer.gateway.uploads import Uploads

pytestmark = pytest.mark.unit

VIDEO = {"Content-Type": "video/mp4"}
OCTETS = {"Content-Type": "application/octet-stream"}


class FakeServed:
    """Answers with what it was asked."""

    def __init__(self, info):
        self.info = info
        self.clip = None

    async def describe(self):
        return self.info

    async def latents(self, clip, **asked):
        self.clip = clip
        return json.dumps(asked | {"shape": list(clip.frames.shape)}).encode()


@pytest.fixture
def served(make_gateway):
    return FakeServed(replace(make_gateway.info, crop=32, trained_frames=8))


@pytest.fixture
def make_post(make_gateway, served):
    def make(**bounds):
        uploads = Uploads(lambda: served, config=UploadConfig(**bounds))
        gateway = make_gateway(uploads=uploads)

        async def post(*, is_announced=True, **request):
            if is_announced:
                await gateway.announce(model=served.info)
            async with gateway.http() as http:
                return await http.post("/v1/latents", **request)

        return post

    return make


@pytest.fixture
def post(make_post):
    return make_post()


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    images = [corner(color=(8 * n, 0, 0)) for n in range(30)]
    return write_video(tmp_path_factory.mktemp("v") / "x.mp4", images, fps=10).read_bytes()


def frames(*shape, dtype=np.uint8):
    count = int(np.prod(shape))
    return (np.arange(count) % 251).astype(dtype).reshape(shape)


async def test_the_first_clip_or_a_later_one(post, served, video):
    first = await post(content=video, headers=VIDEO)
    assert first.headers["content-type"] == "application/octet-stream"
    assert first.json() == {
        "context_ids": None,
        "target_ids": None,
        "start_s": 0.0,
        "shape": [8, 32, 32, 3],
    }
    begin = served.clip.first_frame
    query = {"start_s": "1", "frames": "4", "fps": "5"}
    later = await post(files={"file": ("x", video)}, data=query)
    assert (later.json()["shape"], later.json()["start_s"]) == ([4, 32, 32, 3], 1.0)
    assert (begin, served.clip.first_frame, served.clip.fps) == (0, 10, 5.0)


async def test_tokens_to_see_and_to_foretell(post, video):
    query = {"context_ids": "0-2,9", "target_ids": "12"}
    answer = await post(content=video, headers=VIDEO, params=query)
    assert (answer.json()["context_ids"], answer.json()["target_ids"]) == ([0, 1, 2, 9], [12])


async def test_frames_as_they_are(post, served):
    given = frames(4, 32, 32, 3)
    answer = await post(content=save({"frames": given}), headers=OCTETS, params={"fps": "2"})
    assert answer.status_code == 200, answer.text
    assert np.array_equal(served.clip.frames, given)
    assert (served.clip.fps, served.clip.end_ns) == (2.0, 1_500_000_000)


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (save({"frames": frames(3, 32, 32, 3)}), 422),
        (save({"frames": frames(10, 32, 32, 3)}), 422),
        (save({"frames": frames(4, 30, 32, 3)}), 422),
        (save({"frames": frames(4, 32, 32)}), 422),
        (save({"frames": frames(4, 32, 32, 3, dtype=np.float32)}), 422),
        (save({"frames": frames(0, 32, 32, 3)}), 422),
        (save({"pictures": frames(4, 32, 32, 3)}), 415),
        (save({"frames": frames(4, 32, 32, 3)})[:-1], 415),
        ((40).to_bytes(8, "little") + b"{" + b"x" * 60, 415),
        ((2**40).to_bytes(8, "little") + b"{" + b"x" * 60, 415),
        (save({"frames": frames(4, 32, 32, 3)}, {"notes": "x" * 70_000}), 415),
        (b"", 415),
        (b"#EXTM3U\nfile:///etc/passwd\n", 415),
    ],
    ids=[
        "odd",
        "long",
        "side",
        "rank",
        "float",
        "none",
        "name",
        "cut",
        "json",
        "far",
        "head",
        "0",
        "list",
    ],
)
async def test_what_cannot_be_encoded(post, served, content, status):
    answer = await post(content=content, headers=OCTETS)
    assert answer.status_code == status, answer.text
    assert served.clip is None


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"context_ids": "1"}, 400),
        ({"target_ids": "5-1"}, 400),
        ({"target_ids": "²"}, 400),
        ({"start_s": "60"}, 400),
        ({"start_s": "9999"}, 422),
        ({"start_s": "nan"}, 422),
        ({"frames": "3"}, 400),
        ({"frames": "9"}, 400),
        ({"strat_s": "1"}, 422),
    ],
    ids=str,
)
async def test_options_that_cannot_be(post, served, video, query, status):
    answer = await post(content=video, headers=VIDEO, params=query)
    assert answer.status_code == status, answer.text
    assert served.clip is None


@pytest.mark.parametrize("fps", ["1e-300", "0.01", "1e9"])
async def test_rates_are_bounded_as_those_of_streams(post, served, video, fps):
    for content in (video, save({"frames": frames(4, 32, 32, 3)})):
        answer = await post(content=content, headers=OCTETS, params={"fps": fps})
        assert (answer.status_code, answer.json()["code"]) == (400, "config"), answer.text
    assert served.clip is None


async def test_models_that_are_not_there_are_not_waited_for(post, served, video, monkeypatch):
    monkeypatch.setattr(served, "describe", asyncio.Event().wait)  # a call without a replica
    async with asyncio.timeout(5):
        answer = await post(is_announced=False, content=video, headers=VIDEO)
    assert (answer.status_code, answer.json()["code"]) == (503, "capacity")


async def test_an_answer_too_large(make_post, video):
    post = make_post(max_latent_bytes=16 * 192 * 4 - 1)  # 8 frames of 2 x 2 patches, width 192
    answer = await post(content=video, headers=VIDEO)
    assert (answer.status_code, answer.json()["code"]) == (400, "config")
    assert (await post(content=video, headers=VIDEO, params={"frames": "6"})).status_code == 200
