"""`streamer watch`: follow one stream in the terminal."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated
from urllib.parse import parse_qsl, urlsplit

import typer

from streamer.cli.output import DEFAULT_SERVER, ended_by_reader
from streamer.errors import ConfigError, ProtocolViolation, StreamerError

if TYPE_CHECKING:
    from streamer.cli.follow import FeedMessage
    from streamer.cli.panel import StreamPanel

__all__ = ["asked_after", "split_target", "watch"]

_SHOWN = frozenset({"anticipation", "surprise", "stream.state", "gap", "error"})
_PATH = re.compile(r"(?P<prefix>.*)/v1/streams/(?P<stream>[^/]+)(?:/feed)?/?")
_INTERRUPTED = 130


def watch(
    target: Annotated[
        str, typer.Argument(metavar="STREAM|URL", help="Id of a stream, or the URL of its feed.")
    ],
    server: Annotated[
        str, typer.Option("--server", envvar="STREAMER_SERVER", help="URL of the server.")
    ] = DEFAULT_SERVER,
    token: Annotated[
        str | None, typer.Option(envvar="STREAMER_TOKEN", help="Access token, if asked for.")
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(help="Go on after this event, by id or seq; 0 shows all that is retained."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One event per line; so it is without a terminal.")
    ] = False,
) -> None:
    """Follow a stream: what is now, what comes, how surprising it is. Ends with the stream.

    A lost connection is taken up again after the last event seen.

    Example: streamer watch kitchen --after 0 --json
    """
    from streamer.cli.client import Client
    from streamer.cli.follow import Follower
    from streamer.cli.panel import StreamPanel

    server, stream = split_target(target, server=server)
    after = asked_after(target) if after is None else after
    _check_after(after)
    is_table = not as_json and sys.stdout.isatty()
    with Client(server, token=token) as client:
        view = client.stream(stream)
    if view.outcome and after is None:
        verb = "is" if view.outcome == "quarantined" else "has"
        _say(f"{stream} {verb} {view.outcome}; --after 0 shows what is retained of it")
        return
    panel = StreamPanel(stream, state=view.state)

    def lost(_: str) -> None:
        panel.lose(f"reconnecting to {client.server} ...")

    notice = lost if is_table else _say
    follower = Follower(client.server, stream, after=after, token=token, notice=notice)
    try:
        messages = _until_end(follower.messages(), is_over=view.outcome != "")
        failed = _draw(messages, panel) if is_table else _print(messages)
    except KeyboardInterrupt:
        if follower.cursor:
            _say(f"go on with --after {follower.cursor}")
        raise typer.Exit(_INTERRUPTED) from None
    if failed:
        raise StreamerError(f"{stream} failed: {failed}")


def split_target(target: str, *, server: str) -> tuple[str, str]:
    """A stream's id, or the URL of it or of its feed -> server and id.

    Raises:
        ConfigError: a URL of something else.
    """
    if "://" not in target:
        return server, target
    try:
        parts = urlsplit(target)
    except ValueError as error:
        raise ConfigError(f"{target!r} is no URL: {error}.") from error
    found = _PATH.fullmatch(parts.path)
    schemes = {"ws": "http", "wss": "https", "http": "http", "https": "https"}
    if found is None or parts.scheme not in schemes or not parts.netloc:
        raise ConfigError(
            f"{target!r} is no stream; write its id, or http://host:8000/v1/streams/ID."
        )
    return f"{schemes[parts.scheme]}://{parts.netloc}{found['prefix']}", found["stream"]


def asked_after(target: str) -> str | None:
    """The cursor in the query of a feed's URL, if there is one.

    Raises:
        ConfigError: the query asks for something else, which would be left out in silence.
    """
    if "://" not in target:
        return None
    asked = dict(parse_qsl(urlsplit(target).query, keep_blank_values=True))
    after = asked.pop("after", None)
    if asked:
        raise ConfigError(f"Of a URL only `after` is taken here, not {', '.join(asked)}.")
    return after


def _check_after(after: str | None) -> None:
    from streamer.events.cursor import parse_cursor

    try:
        parse_cursor(after or 0)
    except ProtocolViolation as error:
        raise ConfigError(f"--after: {error.message}") from error


def _until_end(messages: Iterable[FeedMessage], *, is_over: bool) -> Iterator[FeedMessage]:
    """Stop after the state that says the stream is over, if nothing is known to follow it; of a
    stream that was over before (`is_over`) also when there is nothing left to show."""
    head_seq = 0
    for message in messages:
        yield message
        fields = message.fields
        if message.type == "session.created":
            head_seq = fields["streams"][0]["head_seq"]
        is_last = _is_final(message) and fields["seq"] >= head_seq
        if is_last or (is_over and message.type == "heartbeat"):
            return


def _is_final(message: FeedMessage) -> bool:
    fields = message.fields
    is_final = fields.get("state") in ("ended", "failed") and fields.get("retry_in_s") is None
    return message.type == "stream.state" and is_final


def _print(messages: Iterable[FeedMessage]) -> str:
    """NDJSON on stdout. Returns why the stream failed, or nothing."""
    failed = ""
    with ended_by_reader():
        for message in messages:
            if message.type in _SHOWN:
                print(message.text, flush=True)
                failed = _failure(message)
    return failed


def _draw(messages: Iterable[FeedMessage], panel: StreamPanel) -> str:
    """The live table. Returns why the stream failed, or nothing."""
    from rich.live import Live

    failed = ""
    # Drawn on its own clock too: while a connection is lost no message comes, and its age grows.
    with Live(get_renderable=panel.render, refresh_per_second=2, redirect_stderr=True) as live:
        for message in messages:
            panel.take(message.fields)
            failed = _failure(message)
            live.refresh()
    return failed


def _failure(message: FeedMessage) -> str:
    if message.fields.get("state") != "failed":
        return ""
    return str(message.fields.get("detail") or message.fields.get("reason") or "no reason given")


def _say(text: str) -> None:
    print(f"streamer: {text}", file=sys.stderr)
