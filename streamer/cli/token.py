"""`streamer token`: make access tokens."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app"]

app = typer.Typer(
    help="Make access tokens.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _root() -> None:
    """Make access tokens."""


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Whose it is; stands in the log of the service.")],
    scopes: Annotated[
        str, typer.Option(help="What it may do: read, write, plan; admin is all of them.")
    ] = "read",
    file: Annotated[
        Path | None, typer.Option(help="Tokens file to append to; made if there is none.")
    ] = None,
) -> None:
    """Make a token. Stdout gets it, this once; its hash goes into --file, else to stderr.

    Example: streamer token new dashboard --scopes read --file tokens.yaml
    """
    from streamer.gateway.token_writing import add_token, token_line
    from streamer.gateway.tokens import new_token

    secret, token = new_token(name, [scope.strip() for scope in scopes.split(",")])
    if file is not None:
        add_token(file, token)
    print(secret, flush=True)
    if file is None:
        _say("# For the file that gateway.tokens_file names; a running service reads it again.")
        _say(token_line(token))
    else:
        _say(f"streamer: {name} is in {file}; the token itself is kept nowhere, so note it now.")


def _say(line: str) -> None:
    print(line, file=sys.stderr)
