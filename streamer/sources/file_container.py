"""Opening a video file with PyAV, so that it can name nothing but itself."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import av
from av.container import InputContainer
from av.stream import Disposition
from av.video.stream import VideoStream

from streamer.clock import parse_utc
from streamer.errors import SourceError, SourceUnavailable, SourceUnsupported
from streamer.sources.config import FileConfig
from streamer.sources.file_samples import declared_samples, is_mov

__all__ = ["created_ns", "duration_s", "opened"]

# A playlist or a session description opened by path would open other files and sockets.
_PROTOCOLS = "file"
_MOV = "mov,mp4,m4a,3gp,3g2,mj2"
_OTHERS = "matroska,webm,mpegts"
_CONTAINERS = "mp4, mov, mkv, webm and ts"


@contextmanager
def opened(path: Path, *, name: str, config: FileConfig) -> Iterator[VideoStream]:
    """The first video stream of a file, ready to decode. Closes the file at the end.

    Raises:
        SourceUnavailable: there is no such file, or it may not be read.
        SourceUnsupported: a folder, empty, not a video, no video track, unknown codec, too large.
    """
    _check_kind(path, name=name)
    with _translated(name):
        formats = _formats(path, name=name, config=config)
        options = {"protocol_whitelist": _PROTOCOLS, "format_whitelist": formats}
        container = av.open(str(path), mode="r", options=options)
    with closing(container):
        yield _video(container, name=name, config=config)


def duration_s(stream: VideoStream) -> float | None:
    """Length as the container declares it, seconds; None when it does not."""
    container = stream.container
    if isinstance(container, InputContainer) and container.duration:
        return float(container.duration) / av.time_base
    if stream.duration and stream.time_base:
        return float(stream.duration * stream.time_base)
    return None


def created_ns(stream: VideoStream) -> int | None:
    """`creation_time` of container or track, UTC nanoseconds; None if absent or nonsense."""
    for metadata in (stream.container.metadata, stream.metadata):
        try:
            created = parse_utc(metadata.get("creation_time", ""))
        except ValueError:
            continue
        if created > 0:
            return created
    return None


def _check_kind(path: Path, *, name: str) -> None:
    with _translated(name):
        found = path.stat()
    if stat.S_ISDIR(found.st_mode):
        raise SourceUnsupported(f"{name} is a folder; name one video file.")
    if not stat.S_ISREG(found.st_mode):
        raise SourceUnsupported(f"{name} is not a regular file; name a video file.")
    if found.st_size == 0:
        raise SourceUnsupported(f"{name} is empty; it holds no video.")


def _formats(path: Path, *, name: str, config: FileConfig) -> str:
    """As which it may be read: what was not looked through is never read as mp4 or mov."""
    with path.open("rb") as file:
        if not is_mov(file.read(8)):
            return _OTHERS
    try:
        found = declared_samples(path)
    except ValueError as error:
        raise SourceUnsupported(
            f"{name} cannot be read here: {error}. Write it anew, like ffmpeg -i FILE -c copy."
        ) from error
    if found > config.max_samples:
        raise SourceUnsupported(
            f"{name} says it has {found} samples; at most {config.max_samples} are taken"
            " (files.max_samples)."
        )
    return _MOV


def _video(container: InputContainer, *, name: str, config: FileConfig) -> VideoStream:
    tracks = [
        track
        for track in container.streams.video
        if not track.disposition & Disposition.attached_pic
    ]
    if not tracks:
        raise SourceUnsupported(f"{name} has no video track; choose a file with pictures.")
    track = tracks[0]
    codec = track.codec_context
    if codec is None:
        raise SourceUnsupported(
            f"{name} has a video codec that is not known here; convert it to H.264."
        )
    if codec.width * codec.height > config.max_pixels:
        raise SourceUnsupported(
            f"{name} has pictures of {codec.width}x{codec.height} pixels; at most"
            f" {config.max_pixels} pixels are taken. Scale it down."
        )
    codec.thread_count = 1
    codec.options = {"max_pixels": str(config.max_pixels)}  # without effect in av.open
    return track


@contextmanager
def _translated(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:  # PyAV's errors with an errno are OSErrors of Python's classes, too
        raise _translate(error, name=name) from error
    except (av.FFmpegError, ValueError) as error:
        raise _not_video(name) from error


def _translate(error: OSError, *, name: str) -> SourceError:
    if isinstance(error, FileNotFoundError):
        return SourceUnavailable(f"There is no file {name}; check its path.")
    if isinstance(error, PermissionError):
        return SourceUnavailable(f"{name} may not be read by this process; check its permissions.")
    if isinstance(error, av.FFmpegError):
        return _not_video(name)
    return SourceUnavailable(f"{name} cannot be read now ({error.strerror}).")


def _not_video(name: str) -> SourceUnsupported:
    return SourceUnsupported(
        f"{name} is not a video in a container that is read here ({_CONTAINERS}), or it is damaged"
        " at its start."
    )
