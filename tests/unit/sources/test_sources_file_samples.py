"""A small file that promises a huge one is refused before the library makes room for it."""

from __future__ import annotations

import os
from pathlib import Path

import av
import numpy as np
import pytest
from media_files import corner, write_video

from streamer.errors import SourceUnsupported
from streamer.sources.config import FileConfig
from streamer.sources.file import FileSource
from streamer.sources.file_samples import declared_samples

pytestmark = pytest.mark.unit

MANY = 40_000_000
FRAGMENTS = {"movflags": "frag_keyframe+empty_moov+default_base_moof"}


def probed(path: Path, **bounds: int) -> None:
    FileSource(path, name="x", config=FileConfig(**bounds)).probe()


def box(name: bytes, *parts: bytes) -> bytes:
    content = b"".join(parts)
    return (len(content) + 8).to_bytes(4) + name + content


def patched(path: Path, name: bytes, *, at: int, number: int) -> Path:
    data = bytearray(path.read_bytes())
    place = data.index(name) + at
    data[place : place + 4] = number.to_bytes(4)
    path.write_bytes(data)
    return path


@pytest.fixture
def video(tmp_path: Path) -> Path:
    return write_video(tmp_path / "x.mp4", [corner()] * 3)


@pytest.fixture
def fragmented(tmp_path: Path) -> Path:
    path = tmp_path / "f.mp4"
    with av.open(str(path), "w", options=FRAGMENTS) as container:
        stream = container.add_stream("libx264", rate=10)
        stream.height, stream.width, stream.pix_fmt = 48, 64, "yuv420p"
        for image in [corner()] * 3:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode(None))
    return path


def with_sound(path: Path, codec: str) -> Path:
    """A second of sound beside three pictures."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=10)
        stream.height, stream.width, stream.pix_fmt = 48, 64, "yuv420p"
        sound = container.add_stream(codec, rate=8000, layout="mono")
        for image in [corner()] * 3:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        silence = av.AudioFrame.from_ndarray(np.zeros((1, 8000), np.int16), "s16", "mono")
        silence.sample_rate = 8000
        container.mux(sound.encode(silence))
        for each in (stream, sound):
            container.mux(each.encode(None))
    return path


def test_what_is_said_is_counted(video: Path, fragmented: Path) -> None:
    assert declared_samples(video) == 3
    assert declared_samples(fragmented) == 3
    probed(video, max_samples=3)
    with pytest.raises(SourceUnsupported, match="max_samples"):
        probed(video, max_samples=2)


def test_a_table_that_gives_all_samples_one_size(video: Path) -> None:
    patched(video, b"stsz", at=8, number=1)
    patched(video, b"stsz", at=12, number=MANY)
    with pytest.raises(SourceUnsupported, match="40000000 samples"):
        probed(video)


def test_a_fragment_without_sizes(fragmented: Path) -> None:
    patched(fragmented, b"trun", at=8, number=MANY)
    with pytest.raises(SourceUnsupported, match="40000000 samples"):
        probed(fragmented)


def test_uncompressed_sound_is_no_index(tmp_path: Path) -> None:
    plain = with_sound(tmp_path / "x.mov", "pcm_s16le")
    assert declared_samples(plain) == 3
    probed(plain, max_samples=3)
    patched(plain, b"soun", at=0, number=int.from_bytes(b"vide"))
    assert declared_samples(plain) == 8003


def test_sound_is_what_the_library_takes_for_sound(tmp_path: Path) -> None:
    plain = with_sound(tmp_path / "x.mov", "pcm_s16le")
    whole = plain.read_bytes()
    real = whole.index(b"mdia", whole.index(b"trak", whole.index(b"trak") + 4))
    name = whole.index(b"hdlr", real)
    fake = whole[name - 4 : name + 28]
    plain.write_bytes(whole[:name] + b"free" + whole[name + 4 :] + box(b"free", b"trak", fake))
    assert declared_samples(plain) == 8003
    within = whole.index(b"stts", real)
    plain.write_bytes(whole[:within] + b"trak" + whole[within + 4 :])
    assert declared_samples(plain) == 8003


def test_what_is_in_the_media_is_no_table(tmp_path: Path) -> None:
    table = box(b"stsz", bytes(4), (1).to_bytes(4), MANY.to_bytes(4))
    path = tmp_path / "x.mp4"
    path.write_bytes(box(b"ftyp") + box(b"mdat", table) + box(b"free", table))
    assert declared_samples(path) == MANY
    large = (1).to_bytes(4) + b"mdat" + (len(table) + 16).to_bytes(8) + table
    path.write_bytes(large + (0).to_bytes(4) + b"mdat" + table)
    assert declared_samples(path) == 0


@pytest.mark.parametrize("name", [b"moov", b"mdat"])
def test_a_box_larger_than_any_file(tmp_path: Path, name: bytes) -> None:
    path = tmp_path / "x.mp4"
    path.write_bytes((1).to_bytes(4) + name + b"\xff" * 8)
    with pytest.raises(SourceUnsupported, match="is not a video"):
        probed(path)


def test_an_index_that_is_compressed(tmp_path: Path) -> None:
    path = tmp_path / "x.mp4"
    path.write_bytes(box(b"moov", box(b"cmov", b"x")))
    with pytest.raises(SourceUnsupported, match="its index is compressed"):
        probed(path)


def test_an_index_of_tables_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "x.mp4"
    path.write_bytes(box(b"moov", b"stsz" * 20_000))
    with pytest.raises(SourceUnsupported, match="its index has too many tables"):
        probed(path)


def test_an_index_too_large_to_be_looked_through(tmp_path: Path) -> None:
    path = tmp_path / "x.mp4"
    path.write_bytes((100_000_000).to_bytes(4) + b"moov")
    os.truncate(path, 70_000_000)
    with pytest.raises(SourceUnsupported, match="its index is too large"):
        probed(path)


def test_what_does_not_begin_as_one_is_not_read_as_one(video: Path) -> None:
    content = video.read_bytes()
    video.write_bytes(box(b"odd ") + content)
    with pytest.raises(SourceUnsupported, match="is not a video"):
        probed(video)
