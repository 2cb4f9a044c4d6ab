"""An upload -> one clip: from a video, or from a safetensors file with `frames`."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from streamer.clips.config import check_frames
from streamer.errors import ConfigError, ShapeMismatch, SourceUnsupported
from streamer.gateway.spool import Spool
from streamer.gateway.upload_schema import LatentOptions
from streamer.latents.tensor_file import is_tensor_file
from streamer.records import Clip, ModelInfo, Pixels
from streamer.sessions.file_clip import read_clip
from streamer.sources.config import FileConfig
from streamer.sources.file import FileSource

__all__ = ["clip_of"]

_HEAD = 16
_MAX_HEADER = 64 * 1024
"""The library reads 100 MB of it, without letting any other thread run meanwhile."""
_TENSOR = "frames"


def clip_of(
    spool: Spool,
    options: LatentOptions,
    *,
    name: str,
    fps: float,
    model: ModelInfo,
    files: FileConfig,
    stop: threading.Event,
) -> Clip:
    """The clip that is asked for. Blocks.

    Args:
        name: of the file, for sentences.
        fps: sampling rate, where the options do not say.
        stop: ends it early when set in another thread.

    Raises:
        ConfigError: options that cannot work.
        ShapeMismatch: `frames` do not fit the model.
        SourceError: neither a video nor a safetensors file with `frames`.
    """
    rate = options.fps or fps
    head = spool.head(_HEAD)
    if is_tensor_file(head, size=spool.size):
        _check_header(int.from_bytes(head[:8], "little"))
        if options.start_s or options.frames:
            raise ConfigError("start_s and frames choose from a video; a file of frames is a clip.")
        return _given(_read(spool.path, model=model), fps=rate)
    frames = options.frames or model.trained_frames
    check_frames(frames, trained_frames=model.trained_frames)
    return read_clip(
        FileSource(spool.path, name=name, config=files),
        start_s=options.start_s,
        fps=rate,
        frames=frames,
        crop=model.crop,
        tubelet=model.tubelet,
        stop=stop,
    )


def _check_header(length: int) -> None:
    if length > _MAX_HEADER:
        raise SourceUnsupported(
            f"The safetensors file has a header of {length} bytes; at most {_MAX_HEADER} are"
            f" read. Send {_TENSOR!r} alone."
        )


def _read(path: Path, *, model: ModelInfo) -> Pixels:
    try:
        with safe_open(path, framework="numpy") as file:
            if _TENSOR not in file.keys():  # noqa: SIM118 - it is no mapping
                raise SourceUnsupported(f"The safetensors file has no tensor {_TENSOR!r}.")
            part = file.get_slice(_TENSOR)
            _check(tuple(part.get_shape()), str(part.get_dtype()), model=model)
            return np.ascontiguousarray(file.get_tensor(_TENSOR))
    except SafetensorError as error:
        raise SourceUnsupported(f"This safetensors file cannot be read: {error}.") from error


def _check(shape: tuple[int, ...], dtype: str, *, model: ModelInfo) -> None:
    crop, most = model.crop, model.trained_frames
    fits = len(shape) == 4 and shape[1:] == (crop, crop, 3) and dtype == "U8"
    if not fits or shape[0] % model.tubelet or not 0 < shape[0] <= most:
        raise ShapeMismatch(
            f"{_TENSOR} must be U8 [T, {crop}, {crop}, 3] with T a multiple of {model.tubelet} up"
            f" to {most}; found {dtype} {list(shape)}."
        )


def _given(frames: Pixels, *, fps: float) -> Clip:
    count = len(frames)
    return Clip(
        stream="file",
        index=0,
        frames=frames,
        start_ns=0,
        end_ns=round((count - 1) / fps * 1e9),
        fps=fps,
        first_frame=0,
        last_frame=count - 1,
        last_tick=count - 1,
        dropped=0,
        filled=0,
        clock="file",
        generation=0,
        arrived_ns=0,
    )
