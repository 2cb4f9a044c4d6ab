"""`streamer config`: what the settings are here, and what they can be."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from streamer.settings import Origin, TracedSettings

__all__ = ["Value", "app", "schema_text", "shown_values"]

app = typer.Typer(
    help="Show the settings and their schema.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_HIDDEN = "***"
_SECRET_WORDS = ("password", "secret", "token", "credential")
_PUBLIC = frozenset({"gateway.tokens_file", "gateway.max_subscribers_per_token"})
"""Names with such a word that hold no secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One setting as it may be shown."""

    name: str
    value: Any
    origin: Origin


@app.command()
def show(
    config: Annotated[Path | None, typer.Option(help="Settings file (YAML).")] = None,
    model: Annotated[str | None, typer.Option(help="As for serve.")] = None,
    host: Annotated[str | None, typer.Option(help="As for serve.")] = None,
    port: Annotated[int | None, typer.Option(help="As for serve.")] = None,
    changed: Annotated[
        bool, typer.Option("--changed", help="Only what is not left at its default.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Show every setting, and whether it is a default or of the file, environment or an option.

    Passwords are hidden, and in URLs user and password.

    Example: streamer config show --changed
    """
    from streamer.settings import trace_settings

    traced = trace_settings(
        config=config,
        options={"model": {"name": model}, "server": {"host": host, "port": port}},
    )
    values = [v for v in shown_values(traced) if not changed or v.origin != "default"]
    if as_json:
        print(json.dumps({v.name: {"value": v.value, "origin": v.origin} for v in values}))
    else:
        _print_lines(values, file=traced.file)


@app.command()
def schema() -> None:
    """Print the JSON Schema of the settings file, for editors and validators.

    Example: streamer config schema > settings.schema.json
    """
    print(schema_text(), end="")


def shown_values(traced: TracedSettings) -> Iterator[Value]:
    """All settings in the order of the tree, nothing secret among them."""
    for name, value in _flat(traced.settings.model_dump(mode="json")):
        origin = traced.origins.get(name, "default")
        yield Value(name=name, value=_harmless(name, value), origin=origin)


def schema_text() -> str:
    """The JSON Schema of a settings file."""
    from streamer.settings import Settings

    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of streamer",
    }
    document = head | {k: v for k, v in Settings.model_json_schema().items() if k != "title"}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _flat(tree: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def _harmless(name: str, value: Any) -> Any:
    from streamer.sources.redact import redact_text

    if isinstance(value, list):
        return [_harmless(name, each) for each in value]
    if not isinstance(value, str) or not value or name in _PUBLIC:
        return value
    if any(word in name.rpartition(".")[2] for word in _SECRET_WORDS):
        return _HIDDEN
    return redact_text(value)


def _print_lines(values: list[Value], *, file: Path | None) -> None:
    width = max((len(v.name) for v in values), default=0)
    for v in values:
        origin = f"file {file}" if v.origin == "file" else v.origin
        print(f"{v.name:{width}}  {json.dumps(v.value, ensure_ascii=False)}  ({origin})")
