"""What records show of themselves."""

from __future__ import annotations

import pytest

from streamer.records import StreamRecord, StreamSpec

pytestmark = pytest.mark.unit


def test_credentials_of_a_source_do_not_show() -> None:
    spec = StreamSpec(source="rtsp://user:secret@camera/1")
    assert "secret" not in repr(StreamRecord(stream="cam", spec=spec))
