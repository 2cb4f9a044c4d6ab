"""`streamer models`: list, look into and convert checkpoints."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from streamer.models.inspection import Entry, Inspection

__all__ = ["EncoderEntry", "Kind", "Output", "app"]

app = typer.Typer(
    help="List, inspect and convert models.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Output(StrEnum):
    AUTO = "auto"
    TABLE = "table"
    JSON = "json"


class Kind(StrEnum):
    AUTO = "auto"
    MODEL = "model"
    PROBE = "probe"


class EncoderEntry(StrEnum):
    TARGET = "target_encoder"
    EMA = "ema_encoder"
    ENCODER = "encoder"


_HUB_IDS = {
    "vitl": "facebook/vjepa2-vitl-fpc64-256",
    "vith": "facebook/vjepa2-vith-fpc64-256",
    "vitg": "facebook/vjepa2-vitg-fpc64-256",
    "vitg-384": "facebook/vjepa2-vitg-fpc64-384",
}

OutputOption = Annotated[
    Output, typer.Option("--output", help="table on a terminal, else json, unless given.")
]


@app.command("ls")
def list_models(output: OutputOption = Output.AUTO) -> None:
    """List the known sizes and where their weights are.

    Example: streamer models ls
    """
    from streamer.models.config import PRESETS
    from streamer.models.inspection import inspect_model

    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "parameters": inspect_model(name).entries[0].parameters,
            "crop": config.crop_size,
            "frames": config.frames_per_clip,
            "width": config.hidden_size,
            "depth": config.num_hidden_layers,
            "weights": _HUB_IDS.get(name),
        }
        for name, config in PRESETS.items()
    ]
    if _wants_json(output):
        print(json.dumps(rows))
    else:
        cells = [[_cell(value) for value in row.values()] for row in rows]
        _print_table(list(rows[0]), cells, expendable=(5, 4, 3, 2, 1))


@app.command()
def inspect(
    name: Annotated[str, typer.Argument(help="Preset, folder, upstream .pt file, or hub id.")],
    output: OutputOption = Output.AUTO,
    crop: Annotated[
        int, typer.Option(help="Picture size that fingerprints of a .pt file are made for.")
    ] = 256,
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit on the hub.")] = None,
    bf16: Annotated[
        bool, typer.Option("--bf16", help="Measure what bfloat16 costs in exactness (folders).")
    ] = False,
) -> None:
    """Show sizes, fingerprint, mask token norms, and every tensor.

    Example: streamer models inspect vitl.pt --output json
    """
    from streamer.models.inspection import inspect_model

    found = inspect_model(name, crop=crop, revision=revision, bf16=bf16)
    if _wants_json(output):
        print(json.dumps(asdict(found)))
    else:
        _print_inspection(found)


@app.command()
def convert(
    file: Annotated[Path, typer.Argument(help="Upstream .pt file: a model or a probe.")],
    out: Annotated[Path, typer.Argument(help="Folder to write.")],
    encoder: Annotated[
        EncoderEntry | None,
        typer.Option(help="Which encoder; the first that is there, in this order, unless given."),
    ] = None,
    kind: Annotated[Kind, typer.Option(help="What the file must be.")] = Kind.AUTO,
    preset: Annotated[
        str | None, typer.Option(help="Sizes by name; from shapes if absent.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Sizes from a config.json.")] = None,
    crop: Annotated[int | None, typer.Option(help="Pixels per side (256).")] = None,
    frames: Annotated[int | None, typer.Option(help="Frames per clip (64).")] = None,
    heads: Annotated[int | None, typer.Option(help="Heads of the encoder or probe.")] = None,
    pred_heads: Annotated[int | None, typer.Option(help="Heads of the predictor.")] = None,
    classifier: Annotated[int, typer.Option(help="Which probe, if the file has several.")] = 0,
    check: Annotated[
        bool, typer.Option("--check", help="Compare source and folder on random input.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Write into a folder that is not empty.")
    ] = False,
    output: OutputOption = Output.AUTO,
) -> None:
    """Convert an upstream .pt file to a folder with config.json and model.safetensors.

    Example: streamer models convert vitl.pt models/vitl --check
    """
    from streamer.models import conversion

    done = conversion.convert(
        file,
        out,
        kind=kind.value,
        entry=encoder.value if encoder else None,
        classifier=classifier,
        hints=conversion.SizeHints(
            preset=preset,
            config=config,
            crop=crop,
            frames=frames,
            heads=heads,
            pred_heads=pred_heads,
        ),
        check=check,
        overwrite=overwrite,
    )
    if _wants_json(output):
        print(json.dumps(asdict(done)))
    else:
        _print_table(["what", "value"], [[k, _cell(v)] for k, v in asdict(done).items()])


def _wants_json(output: Output) -> bool:
    return output is Output.JSON or (output is Output.AUTO and not sys.stdout.isatty())


def _cell(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}".replace(",", " ") if value > 99_999 else str(value)
    return "-" if value is None else str(value)


def _print_table(
    columns: list[str], rows: list[list[str]], *, expendable: tuple[int, ...] = ()
) -> None:
    """`expendable`: columns to leave out where it is narrow, the least needed first."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from streamer.cli.columns import fitting

    console = Console()
    contents = [[name, *(row[i] for row in rows)] for i, name in enumerate(columns)]
    kept = fitting(contents, width=console.width, expendable=expendable, between=3, edges=4)
    table = Table()
    for i in kept:
        table.add_column(columns[i], overflow="fold")
    for row in rows:
        table.add_row(*(escape(row[i]) for i in kept))
    console.print(table)


def _print_inspection(found: Inspection) -> None:
    facts = {"name": found.name, "kind": found.kind, "trained": found.trained}
    config = {key: value for key, value in (found.config or {}).items() if "label" not in key}
    _print_table(["what", "value"], [[k, _cell(v)] for k, v in (facts | config).items()])
    if found.bf16_error is not None:
        rows = [
            ["mean", f"{found.bf16_error.mean:.3g}"],
            ["max", f"{found.bf16_error.largest:.3g}"],
        ]
        _print_table(["bf16 error", "standard deviations"], rows)
    for entry in found.entries:
        _print_entry(entry)


def _print_entry(entry: Entry) -> None:
    norms = " ".join(f"{norm:.4g}" for norm in entry.mask_token_norms)
    facts = {
        "entry": entry.name or None,
        "parameters": entry.parameters,
        "sha256": entry.sha256,
        "fingerprint": entry.fingerprint,
        "mask token norms": norms or None,
    }
    _print_table(["what", "value"], [[k, _cell(v)] for k, v in facts.items()])
    rows = [[t.key, str(list(t.shape)), t.dtype] for t in entry.tensors]
    _print_table(["key", "shape", "dtype"], rows)
