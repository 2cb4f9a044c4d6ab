"""What a server makes of a file, as far as it came."""

from __future__ import annotations

import httpx2
import pytest

from streamer.cli.client import ServerUnreachable
from streamer.cli.upload import Uploader

pytestmark = pytest.mark.unit

LIVE = b'{"type":"stream.state","state":"live"}'
ENDED = b'{"type":"stream.state","state":"ended","reason":"eof"}'
ERROR = b'{"type":"error","code":"file_failed","message":"No."}'


def events(body, path):
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, content=body))
    with Uploader("http://127.0.0.1:9", transport=transport) as uploader:
        return list(uploader.anticipations(path, query={}))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "x.mp4"
    path.write_bytes(b"x")
    return path


@pytest.mark.parametrize("last", [ENDED, ERROR])
def test_all_of_it(path, last):
    assert events(LIVE + b"\n" + last + b"\n", path) == [LIVE, last]


@pytest.mark.parametrize(
    "body", [b"", LIVE + b"\n", LIVE + b"\n" + ENDED[:-9]], ids=["nothing", "begin", "half"]
)
def test_an_answer_that_was_cut_off_is_no_end(path, body):
    with pytest.raises(ServerUnreachable, match="broke off"):
        events(body, path)
