"""Video files, good and bad, as sources."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from media_files import concatenated, corner, write_sound, write_video

from streamer.clips.assembler import ClipAssembler
from streamer.clips.config import ClipConfig
from streamer.errors import SourceUnavailable, SourceUnsupported, StreamerError
from streamer.frames.config import PixelConfig, SamplerConfig
from streamer.frames.framer import Framer
from streamer.frames.pixels import PixelConverter
from streamer.frames.sampler import Sampler, SamplerCounts
from streamer.records import Clip, Picture, SourceState
from streamer.sources.config import FileConfig
from streamer.sources.file import FileSource

pytestmark = pytest.mark.unit


def run(source: FileSource, *, stop: threading.Event | None = None) -> list[Picture]:
    pictures: list[Picture] = []
    source.run(sink=pictures.append, report=lambda _: None, stop=stop or threading.Event())
    return pictures


def read(path: Path) -> tuple[list[Picture], FileSource]:
    source = FileSource(path, name=path.name)
    return run(source), source


def farewell(path: Path) -> SourceState:
    states: list[SourceState] = []
    FileSource(path, name=path.name).run(
        sink=lambda _: None, report=states.append, stop=threading.Event()
    )
    return states[-1]


def clips_of(path: Path, *, fps: float = 4.0, frames: int = 4) -> tuple[list[Clip], SamplerCounts]:
    """The whole line from file to clips."""
    sampler = Sampler(SamplerConfig(fps=fps))
    converter = PixelConverter(PixelConfig(crop=42))
    framer = Framer(stream="s", fps=fps, sampler=sampler, converter=converter)
    assembler = ClipAssembler(ClipConfig(frames=frames, fps=fps, stride_s=2 / fps), stream="s")
    clips: list[Clip] = []

    def sink(picture: Picture) -> None:
        for frame in framer.push(picture):
            clips.extend(assembler.push(frame))

    FileSource(path, name="s").run(sink=sink, report=lambda _: None, stop=threading.Event())
    return clips + assembler.finish(), sampler.counts


def noisy(count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [(corner() + rng.integers(0, 20, (48, 64, 3))).astype(np.uint8) for _ in range(count)]


def damaged(path: Path, damage: Callable[[bytearray], bytes]) -> Path:
    whole = write_video(path, noisy(30), options={"g": "5"})
    whole.write_bytes(damage(bytearray(whole.read_bytes())))
    return whole


def test_every_picture_comes_once_in_order_with_its_time(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", noisy(12), options={"bf": "2"})
    pictures, source = read(path)
    assert [p.index for p in pictures] == list(range(12))
    assert [p.pts_s for p in pictures] == pytest.approx([n / 10 for n in range(12)])
    assert {p.clock for p in pictures} == {"file"}
    assert not source.live
    assert (source.counts["pictures"], source.counts["undecodable"]) == (12, 0)


def test_capture_time_is_creation_time_plus_pts(tmp_path: Path) -> None:
    metadata = {"creation_time": "2026-01-02T03:04:05.000000Z"}
    pictures, _ = read(write_video(tmp_path / "a.mp4", [corner()] * 3, metadata=metadata))
    start_ns = 1_767_323_045 * 10**9
    assert [p.captured_at_ns - start_ns for p in pictures] == [0, 100_000_000, 200_000_000]


def test_capture_time_without_creation_time_counts_from_1970(tmp_path: Path) -> None:
    pictures, _ = read(write_video(tmp_path / "a.ts", [corner()] * 3))
    assert pictures[0].pts_s != 0
    assert [p.captured_at_ns for p in pictures] == [0, 100_000_000, 200_000_000]


def test_duration_is_known_before_playing(tmp_path: Path) -> None:
    source = FileSource(write_video(tmp_path / "a.mp4", [corner()] * 12), name="a")
    assert source.duration_s is None
    source.probe()
    assert source.duration_s == pytest.approx(1.2)


def test_states_are_told(tmp_path: Path) -> None:
    states: list[SourceState] = []
    FileSource(write_video(tmp_path / "a.mp4", [corner()]), name="a").run(
        sink=lambda _: None, report=states.append, stop=threading.Event()
    )
    assert [(s.state, s.reason) for s in states] == [
        ("starting", "opening"),
        ("live", ""),
        ("ended", "eof"),
    ]


def test_stop_ends_it_after_the_picture_in_hand(tmp_path: Path) -> None:
    stop = threading.Event()
    pictures: list[Picture] = []

    def sink(picture: Picture) -> None:
        pictures.append(picture)
        stop.set()

    path = write_video(tmp_path / "a.mp4", [corner()] * 12)
    FileSource(path, name="a").run(sink=sink, report=lambda _: None, stop=stop)
    assert len(pictures) == 1


def test_realtime_waits_until_each_picture_is_due(tmp_path: Path) -> None:
    now = [10**9]
    waits: list[float] = []

    def wait(_stop: threading.Event, seconds: float) -> bool:
        waits.append(seconds)
        now[0] += round(seconds * 1e9)
        return False

    path = write_video(tmp_path / "a.mp4", [corner()] * 5)
    source = FileSource(path, name="a", is_realtime=True, now_ns=lambda: now[0], wait=wait)
    pictures = run(source)
    assert source.live and len(pictures) == 5
    assert waits == pytest.approx([0.1] * 4)


def test_short_file_gives_one_padded_clip(tmp_path: Path) -> None:
    clips, counts = clips_of(write_video(tmp_path / "a.mp4", [corner()] * 6), frames=8)
    assert [(c.padded, c.frames.shape) for c in clips] == [(5, (8, 42, 42, 3))]
    assert (counts.used, counts.sampled_out, counts.dropped) == (3, 3, 0)


def test_variable_rate_is_sampled_by_time(tmp_path: Path) -> None:
    times = [0, 40, 300, 310, 320, 500, 1400, 1520, 1750]
    path = write_video(tmp_path / "a.mkv", [corner()] * len(times), times_ms=times)
    clips, counts = clips_of(path)
    assert (counts.used, counts.sampled_out, counts.filled) == (6, 3, 2)
    assert [(c.last_tick, c.filled) for c in clips] == [(3, 1), (5, 2), (7, 1)]


def test_size_and_time_may_jump_in_the_middle(tmp_path: Path) -> None:
    small = write_video(tmp_path / "1.ts", [corner()] * 20)
    tall = write_video(tmp_path / "2.ts", [corner(height=96, width=64)] * 20)
    path = concatenated(tmp_path / "a.ts", small, tall)
    clips, counts = clips_of(path)
    assert [c.generation for c in clips] == [0] * 3 + [1] * 3
    assert counts.used + counts.sampled_out + counts.dropped == 40
    assert counts.dropped == 0


def test_truncated_file_gives_what_it_has(tmp_path: Path) -> None:
    pictures, _ = read(damaged(tmp_path / "a.mkv", lambda b: bytes(b[: len(b) * 2 // 3])))
    assert 10 < len(pictures) < 30


def test_what_was_damaged_is_said_at_the_end(tmp_path: Path) -> None:
    whole = farewell(write_video(tmp_path / "a.mkv", noisy(30)))
    assert (whole.state, whole.reason, whole.detail) == ("ended", "eof", "")
    cut = farewell(damaged(tmp_path / "b.mkv", lambda b: bytes(b[: len(b) // 2])))
    assert (cut.state, cut.reason) == ("ended", "damaged")
    assert " s early" in cut.detail


def test_damaged_bytes_are_skipped_and_counted(tmp_path: Path) -> None:
    def flip(whole: bytearray) -> bytes:
        rng = np.random.default_rng(1)
        for place in rng.integers(len(whole) // 4, len(whole) * 9 // 10, 80):
            whole[place] ^= 0xFF
        return bytes(whole)

    pictures, source = read(damaged(tmp_path / "a.mkv", flip))
    assert 10 < len(pictures) <= 30
    assert source.counts["corrupt"] + source.counts["undecodable"] > 0
    assert source.counts["pictures"] == len(pictures)
    assert farewell(tmp_path / "a.mkv").reason == "damaged"


def playlist(path: Path) -> None:
    write_video(path.with_name("b.ts"), [corner()])
    path.write_text(f"#EXTM3U\n#EXTINF:1,\n{path.with_name('b.ts')}\n#EXT-X-ENDLIST\n")


def session_description(path: Path) -> None:
    path.write_text("v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nm=video 5004 RTP/AVP 96\n")


BAD: list[tuple[str, Callable[[Path], object], str]] = [
    ("empty.mp4", lambda p: p.touch(), "is empty"),
    ("folder", lambda p: p.mkdir(), "is a folder"),
    ("pipe.mp4", os.mkfifo, "is not a regular file"),
    ("noise.mp4", lambda p: p.write_bytes(np.random.default_rng(0).bytes(4000)), "not a video"),
    ("text.mp4", lambda p: p.write_text("hello" * 100), "not a video"),
    ("sound.mp4", write_sound, "has no video track"),
    ("list.m3u8", playlist, "not a video"),
    ("list.mp4", playlist, "not a video"),
    ("cam.sdp", session_description, "not a video"),
    ("headless.mp4", lambda p: damaged(p, lambda b: bytes(b[: len(b) // 2])), "not a video"),
]


@pytest.mark.parametrize(("name", "make", "sentence"), BAD, ids=[name for name, _, _ in BAD])
def test_what_is_no_video_is_refused_with_a_sentence(
    tmp_path: Path, name: str, make: Callable[[Path], object], sentence: str
) -> None:
    make(tmp_path / name)
    with pytest.raises(SourceUnsupported, match=sentence):
        read(tmp_path / name)


def test_missing_file_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match=r"There is no file a\.mp4"):
        FileSource(tmp_path / "a.mp4", name="a.mp4").probe()


def test_too_many_pixels_are_refused(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", [corner()])
    with pytest.raises(SourceUnsupported, match="64x48 pixels; at most 3000"):
        run(FileSource(path, name="a", config=FileConfig(max_pixels=3000)))


def test_growing_pictures_are_not_decoded_beyond_the_limit(tmp_path: Path) -> None:
    small = write_video(tmp_path / "1.ts", [corner()] * 5)
    large = write_video(tmp_path / "2.ts", [corner(height=192, width=256)] * 5)
    path = concatenated(tmp_path / "a.ts", small, large)
    pictures = run(FileSource(path, name="a", config=FileConfig(max_pixels=10_000)))
    assert {(p.image.width, p.image.height) for p in pictures} == {(64, 48)}


def test_errors_are_ours_whatever_the_bytes(tmp_path: Path) -> None:
    whole = write_video(tmp_path / "whole.mp4", [corner()] * 4).read_bytes()
    rng = np.random.default_rng(3)
    for number in range(40):
        broken = bytearray(whole)
        for place in rng.integers(0, len(whole), 25):
            broken[place] = rng.integers(256)
        path = tmp_path / f"{number}.mp4"
        path.write_bytes(bytes(broken[: rng.integers(1, len(whole))]))
        try:
            read(path)
        except StreamerError as error:
            assert str(error).startswith(path.name)


def test_frame_rate_is_never_believed(tmp_path: Path) -> None:
    """Declared 10 fps, really 2: by time the picture is repeated, by count it would not be."""
    path = write_video(tmp_path / "a.mkv", [corner()] * 8, times_ms=[500 * n for n in range(8)])
    _, counts = clips_of(path, fps=4.0)
    assert (counts.used, counts.filled) == (8, 7)
