"""`streamer encode`: latents of a video file, or a masked prediction inside it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamer.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor

    from streamer.models.vjepa2 import VJepa2
    from streamer.records import Clip

__all__ = ["encode", "parse_ids"]

_MAX_IDS = 1_000_000


def encode(
    file: Annotated[Path, typer.Argument(help="Video file.")],
    out: Annotated[Path, typer.Option("--out", help="File to write, .safetensors.")],
    model: Annotated[str, typer.Option(help="Preset, folder or hub id.")] = "tiny",
    context_ids: Annotated[
        str | None,
        typer.Option(help="Tokens to see, such as 0-100,200; all but the targets if absent."),
    ] = None,
    target_ids: Annotated[
        str | None,
        typer.Option(help="Tokens to predict; may lie after the clip. Without it: no prediction."),
    ] = None,
    start_s: Annotated[float, typer.Option(help="Where the clip begins, seconds.")] = 0.0,
    fps: Annotated[float, typer.Option(help="Frames per second to sample.")] = 4.0,
    frames: Annotated[
        int | None, typer.Option(help="Frames in the clip; as the model was trained if absent.")
    ] = None,
) -> None:
    """Write the latents of one clip of a file, or a masked prediction, as safetensors.

    Tokens are numbered by time, row, column. Latents are raw; predictions are layer-normed.

    Example: streamer encode kitchen.mp4 --out kitchen.safetensors
    """
    if context_ids is not None and target_ids is None:
        raise ConfigError("--context-ids without --target-ids: say what is to be predicted.")
    if not out.absolute().parent.is_dir() or out.is_dir():
        raise ConfigError(f"Cannot write {out}: its folder is missing, or it is a folder itself.")
    wanted = None if target_ids is None else parse_ids(target_ids, option="--target-ids")
    seen = None if context_ids is None else parse_ids(context_ids, option="--context-ids")

    from streamer.cli.file_clip import read_clip
    from streamer.models.vjepa2 import load_model

    loaded = load_model(model)
    clip = read_clip(
        file,
        start_s=start_s,
        fps=fps,
        frames=loaded.config.frames_per_clip if frames is None else frames,
        crop=loaded.config.crop_size,
        tubelet=loaded.config.tubelet_size,
    )
    if not loaded.trained:
        print(f"note: {loaded.name} has random weights; the numbers mean nothing", file=sys.stderr)
    tensors = _latents(loaded, clip) if wanted is None else _prediction(loaded, clip, seen, wanted)
    _write(out, tensors, _metadata(loaded, clip, start_s=start_s))
    shapes = ", ".join(f"{name} {list(tensor.shape)}" for name, tensor in tensors.items())
    print(f"wrote {out}: {shapes}", file=sys.stderr)


def parse_ids(text: str, *, option: str) -> list[int]:
    """``0-100,200`` -> 0, 1, ..., 100, 200; ranges include both ends.

    Raises:
        ConfigError: not such a list.
    """
    ids: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ConfigError(f"{option} holds {part.strip()!r}; write ids such as 0-100,200.")
        low, high = int(first), int(last) if dash else int(first)
        if high < low or high - low + len(ids) >= _MAX_IDS:
            raise ConfigError(f"{option} holds {part.strip()!r}, which runs backwards or too far.")
        ids += range(low, high + 1)
    return ids


def _latents(model: VJepa2, clip: Clip) -> dict[str, Tensor]:
    from streamer.latents.encoder import Encoder
    from streamer.serving.transfer import read_tensor

    return {"latents": Encoder(model).encode(read_tensor(clip.frames)[None])[0]}


def _prediction(
    model: VJepa2, clip: Clip, seen: list[int] | None, wanted: list[int]
) -> dict[str, Tensor]:
    import torch

    from streamer.serving.masked import predict_masked

    if seen is None:
        seen = sorted(set(range(_count(model, clip))) - set(wanted))
    found = predict_masked(model, clip.frames, context_ids=seen, target_ids=wanted)
    return {
        "prediction": found.prediction,
        "context": found.context,
        "context_ids": torch.tensor(seen),
        "target_ids": torch.tensor(wanted),
    }


def _count(model: VJepa2, clip: Clip) -> int:
    tubelets: int = clip.frames.shape[0] // model.config.tubelet_size
    return tubelets * model.config.grid_size**2


def _metadata(model: VJepa2, clip: Clip, *, start_s: float) -> dict[str, str]:
    side = model.config.grid_size
    facts = {
        "model": model.name,
        "fingerprint": model.fingerprint,
        "trained": model.trained,
        "grid": [clip.frames.shape[0] // model.config.tubelet_size, side, side],
        "start_s": start_s,
        "fps": clip.fps,
        "first_frame": clip.first_frame,
        "last_frame": clip.last_frame,
        "padded": clip.padded,
        "filled": clip.filled,
        "config": model.config.to_dict(),
    }
    return {
        key: value if isinstance(value, str) else json.dumps(value) for key, value in facts.items()
    }


def _write(out: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    whole = {name: tensor.to("cpu").contiguous() for name, tensor in tensors.items()}
    try:
        save_file(whole, out, metadata=metadata)
    except (OSError, SafetensorError) as error:
        raise ConfigError(f"Cannot write {out}: {error}.") from error
