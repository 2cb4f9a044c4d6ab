"""`streamer train`: the training loops, from a recipe file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamer.errors import ConfigError

if TYPE_CHECKING:
    from streamer.training.pretrain import Pretraining, Progress
    from streamer.training.recipe import Recipe

__all__ = ["app"]

app = typer.Typer(
    help="Train models.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


_TRIED_STEPS = 4


@app.callback()
def _group() -> None:
    """Keeps `pretrain` a command of its own, although it is the only one."""


@app.command()
def pretrain(
    config: Annotated[Path, typer.Option("--config", help="Recipe: a YAML file.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the training; not for --dry-run.")
    ] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="Instead of the recipe's.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Instead of the recipe's.")] = None,
    device: Annotated[str, typer.Option("--device", help="cpu, cuda, ...")] = "cpu",
    threads: Annotated[int, typer.Option("--threads", help="Of the computation; 0: all.")] = 0,
    workers: Annotated[int, typer.Option("--workers", help="Processes that make the data.")] = 1,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Some steps: shapes, times and memory; nothing is kept."),
    ] = False,
) -> None:
    """Pre-train encoder and predictor; a folder that holds a training is gone on with.

    Example: streamer train pretrain --config docs/recipes/demo.yaml --out runs/demo
    """
    from streamer.training.recipe import read_recipe

    if out is None and not dry_run:
        raise ConfigError("Name the folder of the training with --out, or try it with --dry-run.")
    options = {
        name: value for name, value in (("steps", steps), ("seed", seed)) if value is not None
    }
    recipe = read_recipe(config, options=options)
    _say("loading torch ...")
    import torch

    if threads:
        torch.set_num_threads(threads)
    if dry_run or out is None:
        _try(recipe, device=device)
        return
    from streamer.training.pretrain import Pretraining

    training = Pretraining(recipe.model, recipe.training, folder=out, device=device)
    if training.step:
        _say(f"going on after step {training.step} of {recipe.training.steps}")
    try:
        _run(training, out, workers=workers)
    except KeyboardInterrupt:
        training.save()
        _say(f"stopped after step {training.step}; the same command goes on from there")
        raise typer.Exit(130) from None
    training.model().save_pretrained(out / "model")
    print(out / "model")


def _run(training: Pretraining, out: Path, *, workers: int) -> None:
    from streamer.cli.training_view import opened_view
    from streamer.training.journal import opened_journal

    config = training.config
    with (
        opened_journal(out, step=training.step) as journal,
        opened_view(total=config.steps, done=training.step) as view,
    ):

        def tell(progress: Progress) -> None:
            if progress.step % config.log_every == 0:
                journal.add(progress)
            view.show(progress)

        training.run(told=tell, workers=workers)


def _try(recipe: Recipe, *, device: str) -> None:
    """A few steps in a folder that is thrown away."""
    import resource
    import statistics
    import tempfile
    from dataclasses import replace
    from itertools import pairwise

    from streamer.clock import monotonic_ns
    from streamer.training.pretrain import Pretraining

    ends_ns: list[int] = []
    losses: list[float] = []

    def tell(progress: Progress) -> None:
        ends_ns.append(monotonic_ns())
        losses.append(progress.loss)

    with tempfile.TemporaryDirectory() as folder:
        few = replace(recipe.training, steps=_TRIED_STEPS, warmup=0)
        training = Pretraining(recipe.model, few, folder=Path(folder), device=device)
        training.run(told=tell)
    model, config, steps = training.model(), recipe.model, recipe.training.steps
    step_s = statistics.median((end - begin) / 1e9 for begin, end in pairwise(ends_ns))
    side, frames = config.grid_size, recipe.training.tasks.longest * config.tubelet_size
    facts = {
        "batch, uint8 [B, T, H, W, C]": [
            *(recipe.training.batch, frames, config.crop_size, config.crop_size, 3)
        ],
        "token grid of a training clip": [frames // config.tubelet_size, side, side],
        "token grid of a served clip": [config.frames_per_clip // config.tubelet_size, side, side],
        "encoder parameters": sum(p.numel() for p in model.encoder.parameters()),
        "predictor parameters": sum(p.numel() for p in model.predictor.parameters()),
        "loss of the first step": round(losses[0], 4),
        "seconds per step": round(step_s, 3),
        f"minutes for {steps} steps": round(steps * step_s / 60, 1),
        "largest memory, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    for name, value in facts.items():
        print(f"{name}: {value}")
    _say(f"{_TRIED_STEPS} steps were tried; nothing was kept")


def _say(message: str) -> None:
    print(message, file=sys.stderr)
