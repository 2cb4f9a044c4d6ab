"""`streamer token`: make access tokens."""

from __future__ import annotations

import json
import sys
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
) -> None:
    """Make a token: stdout gets the token, this once, and stderr the line for the tokens file.

    Example: streamer token new dashboard --scopes read 2>> tokens.yaml
    """
    from streamer.gateway.tokens import new_token

    secret, token = new_token(name, [scope.strip() for scope in scopes.split(",")])
    print(secret, flush=True)
    _say("# For the file that gateway.tokens_file names; a running service reads it again.")
    _say(f"- {json.dumps(token.model_dump(mode='json'))}")


def _say(line: str) -> None:
    print(line, file=sys.stderr)
