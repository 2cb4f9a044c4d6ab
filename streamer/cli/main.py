"""`streamer`: the entry point. Commands are imported when they run, so that help is instant."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from streamer import __version__
from streamer.errors import ConfigError, HorizonUnreachable, NotFound, StreamerError

__all__ = ["COMMANDS", "LazyGroup", "app", "exit_code", "main"]

COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "serve": ("streamer.cli.serve:serve", "Start the service: cameras in, anticipations out."),
        "watch": ("streamer.cli.watch:watch", "Follow a stream of a running service."),
        "anticipate": ("streamer.cli.anticipate:anticipate", "Anticipate one video file."),
        "streams": ("streamer.cli.streams:app", "Add, list, show and remove streams."),
        "encode": ("streamer.cli.encode:encode", "Write the latents of a video file."),
        "models": ("streamer.cli.models:app", "List, inspect and convert models."),
        "train": ("streamer.cli.train:app", "Train models."),
        "bench": ("streamer.cli.bench:app", "Measure a service over time."),
        "token": ("streamer.cli.token:app", "Make access tokens for a service."),
        "config": ("streamer.cli.config:app", "Show the settings and their schema."),
        "doctor": ("streamer.cli.doctor:doctor", "Check this machine and say what to mend."),
        "version": ("streamer.cli.version:version", "Show versions and what was found here."),
    }
)
"""Name -> where the command is, and its line in the help."""

_HELP = {"help_option_names": ["-h", "--help"]}
_COMPLETION = ("install_completion", "show_completion")
_USAGE = 2
_UNREACHABLE = 3
_NOT_FOUND = 4


class LazyGroup(TyperGroup):
    """Lists commands from the table; imports the one that runs."""

    def __init__(self, **options: Any) -> None:
        options["commands"] = {
            name: TyperCommand(name, callback=lambda: None, help=line)
            for name, (_, line) in COMMANDS.items()
        }
        super().__init__(**options)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else _load(name), rest


app = typer.Typer(
    cls=LazyGroup,
    name="streamer",
    help="Watches live cameras and says what is about to happen.",
    context_settings=_HELP,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"streamer {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit


def _load(name: str) -> Any:
    module, _, attribute = COMMANDS[name][0].partition(":")
    found = getattr(importlib.import_module(module), attribute)
    if not isinstance(found, typer.Typer):
        single = typer.Typer(pretty_exceptions_enable=False)
        single.command(name, context_settings=_HELP)(found)
        found = single
    command = typer.main.get_command(found)
    command.name = name
    # Completion is installed once, for the whole program.
    command.params = [p for p in command.params if p.name not in _COMPLETION]
    return command


def exit_code(error: StreamerError) -> int:
    """1 failed, 2 usage or settings, 3 server unreachable, 4 not found."""
    if isinstance(error, ConfigError | HorizonUnreachable):
        return _USAGE
    if isinstance(error, NotFound):
        return _NOT_FOUND
    return _UNREACHABLE if error.code == "unreachable" else 1


def main() -> None:
    """Run one command and leave with its exit code."""
    try:
        app()
    except StreamerError as error:
        _say(error.message)
        sys.exit(exit_code(error))
    except OSError as error:
        # A full disk, a vanished folder: the machine's refusal, which no command foresees.
        _show_trace()
        where = f" for {error.filename}" if error.filename else ""
        _say(f"the system refused{where}: {error.strerror or error}.")
        sys.exit(1)
    except Exception as error:
        # The last place that sees it: whatever is a bug ends here, with a sentence.
        _show_trace()
        _say(
            f"internal error, {type(error).__name__}: {error}"
            " (STREAMER_LOG__LEVEL=debug shows where)"
        )
        sys.exit(1)


def _show_trace() -> None:
    if os.environ.get("STREAMER_LOG__LEVEL", "").lower() == "debug":
        traceback.print_exc()


def _say(message: str) -> None:
    print(f"streamer: {message}", file=sys.stderr)
