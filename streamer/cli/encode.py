"""`streamer encode`: latents of a video file, or a masked prediction inside it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from streamer.errors import ConfigError, NotFound

__all__ = ["encode"]


def encode(
    file: Annotated[Path, typer.Argument(help="Video file.")],
    out: Annotated[Path, typer.Option("--out", help="File to write, .safetensors.")],
    model: Annotated[
        str | None, typer.Option(help="Preset, folder or hub id; tiny if absent.")
    ] = None,
    context_ids: Annotated[
        str | None,
        typer.Option(help="Tokens to see, such as 0-100,200; all but the targets if absent."),
    ] = None,
    target_ids: Annotated[
        str | None,
        typer.Option(help="Tokens to predict; may lie after the clip. Without it: no prediction."),
    ] = None,
    start_s: Annotated[float, typer.Option(help="Where the clip begins, seconds.")] = 0.0,
    fps: Annotated[float | None, typer.Option(help="Frames per second to sample (4).")] = None,
    frames: Annotated[
        int | None, typer.Option(help="Frames in the clip; as the model was trained if absent.")
    ] = None,
    server: Annotated[
        str | None, typer.Option(help="URL of a service that computes; here if absent.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option("--token", envvar="STREAMER_TOKEN", help="Its access token, if asked for."),
    ] = None,
) -> None:
    """Write the latents of one clip of a file, or a masked prediction, as safetensors.

    Tokens are numbered by time, row, column. Latents are raw; predictions are layer-normed.

    Example: streamer encode kitchen.mp4 --out kitchen.safetensors
    """
    if context_ids is not None and target_ids is None:
        raise ConfigError("--context-ids without --target-ids: say what is to be predicted.")
    if server is not None and model is not None:
        raise ConfigError("--model does not go with --server, which has its own model loaded.")
    if not out.absolute().parent.is_dir() or out.is_dir():
        raise ConfigError(f"Cannot write {out}: its folder is missing, or it is a folder itself.")
    if out.suffix not in ("", ".safetensors"):
        raise ConfigError(f"{out} would hold safetensors; name it {out.stem}.safetensors.")
    from streamer.latents.token_ids import parse_ids

    wanted = None if target_ids is None else parse_ids(target_ids, option="--target-ids")
    seen = None if context_ids is None else parse_ids(context_ids, option="--context-ids")
    if not file.is_file():
        raise NotFound(f"There is no file {file}.")
    if server is not None:
        query = {
            "context_ids": context_ids,
            "target_ids": target_ids,
            "start_s": start_s,
            "fps": fps,
            "frames": frames,
        }
        content = _asked(file, server=server, token=token, query=query)
    else:
        content = _computed(
            file,
            model=model or "tiny",
            seen=seen,
            wanted=wanted,
            start_s=start_s,
            fps=4.0 if fps is None else fps,
            frames=frames,
        )
    from streamer.latents.tensor_file import tensor_header

    header = tensor_header(content)
    _write(out, content)
    _tell(header, out)


def _computed(
    file: Path,
    *,
    model: str,
    seen: list[int] | None,
    wanted: list[int] | None,
    start_s: float,
    fps: float,
    frames: int | None,
) -> bytes:
    from streamer.models.vjepa2 import load_model
    from streamer.serving.clip_latents import clip_latents
    from streamer.sessions.file_clip import read_clip
    from streamer.sources.file import FileSource

    loaded = load_model(model)
    clip = read_clip(
        FileSource(file, name=file.name),
        start_s=start_s,
        fps=fps,
        frames=loaded.config.frames_per_clip if frames is None else frames,
        crop=loaded.config.crop_size,
        tubelet=loaded.config.tubelet_size,
    )
    return clip_latents(loaded, clip, context_ids=seen, target_ids=wanted, start_s=start_s)


def _asked(file: Path, *, server: str, token: str | None, query: Mapping[str, object]) -> bytes:
    from streamer.cli.upload import Uploader

    with Uploader(server, token=token) as uploader:
        return uploader.latents(file, query=query)


def _tell(header: dict[str, Any], out: Path) -> None:
    facts = header.pop("__metadata__", {})
    if facts.get("trained") == "false":
        print(
            f"note: {facts['model']} has random weights; the numbers mean nothing", file=sys.stderr
        )
    if facts.get("padded", "0") != "0":
        print(
            f"note: the file is shorter than a clip; its first frame stands {facts['padded']} times"
            " more in front",
            file=sys.stderr,
        )
    shapes = ", ".join(f"{name} {tensor['shape']}" for name, tensor in header.items())
    print(f"wrote {out}: {shapes}", file=sys.stderr)


def _write(out: Path, content: bytes) -> None:
    try:
        out.write_bytes(content)
    except OSError as error:
        raise ConfigError(f"Cannot write {out}: {error}.") from error
