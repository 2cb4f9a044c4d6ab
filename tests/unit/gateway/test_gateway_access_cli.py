"""Tokens from end to end: made by the command, used by the commands, tickets on the feed."""

from __future__ import annotations

import asyncio
import json

import pytest
import websockets
from typer.testing import CliRunner
from websockets.asyncio.client import connect

from streamer.backoff import Backoff
from streamer.cli.client import Client
from streamer.cli.follow import Follower
from streamer.cli.main import app
from streamer.errors import ConfigError, Forbidden, Unauthorized
from streamer.gateway.config import GatewayConfig
from streamer.settings import load_settings

pytestmark = pytest.mark.unit

QUICK = Backoff(first_s=0.01, cap_s=0.05, max_tries=4)


def _new(name, scopes, path):
    """As a person does it: the token from stdout, stderr into the file."""
    made = CliRunner().invoke(app, ["token", "new", name, "--scopes", scopes])
    assert made.exit_code == 0
    with path.open("a") as file:
        file.write(made.stderr)
    return made.stdout.strip()


@pytest.fixture
async def guarded(make_gateway, tmp_path):
    """A gateway with the tokens `read` and `write`."""
    path = tmp_path / "tokens.yaml"
    secrets = {scope: _new(scope, scope, path) for scope in ("read", "write")}
    gateway = make_gateway(config=GatewayConfig(tokens_file=str(path)))
    await gateway.stream()
    return gateway, secrets


def test_a_wrong_scope_is_refused():
    made = CliRunner().invoke(app, ["token", "new", "x", "--scopes", "reed"])
    assert isinstance(made.exception, ConfigError)
    assert made.stdout == ""


async def test_commands_carry_the_token(guarded):
    gateway, secrets = guarded

    async def run(*args, token):
        env = {"STREAMER_SERVER": f"http://{host}", "STREAMER_TOKEN": token}
        return await asyncio.to_thread(CliRunner().invoke, app, list(args), env=env)

    async with gateway.served() as host:
        found = await run("streams", "ls", token=secrets["read"])
        assert json.loads(found.stdout)[0]["id"] == "cam"
        assert isinstance((await run("streams", "ls", token="")).exception, Unauthorized)
        refused = await run("streams", "rm", "cam", token=secrets["read"])
        assert "'write'" in str(refused.exception)
        gone = await run("streams", "rm", "cam", "--token", secrets["write"], token="")
        assert gone.exit_code == 0


async def test_follower_carries_the_token(guarded):
    gateway, secrets = guarded

    def first(token):
        follower = Follower(
            f"http://{host}", "cam", token=token, notice=lambda text: None, retry=QUICK
        )
        return next(follower.messages()).type

    async with gateway.served() as host:
        assert await asyncio.to_thread(first, secrets["read"]) == "session.created"
        for token, error in (
            (None, Unauthorized),
            ("x", Unauthorized),
            (secrets["write"], Forbidden),
        ):
            with pytest.raises(error):
                await asyncio.to_thread(first, token)


async def test_ticket_opens_the_feed_and_nothing_else(guarded):
    gateway, secrets = guarded
    async with gateway.served() as host, gateway.http() as http:

        async def code(ticket):
            url = f"ws://{host}/v1/streams/cam/feed?ticket={ticket}"
            async with connect(url, proxy=None) as socket:
                try:
                    return json.loads(await asyncio.wait_for(socket.recv(), 5))["type"]
                except websockets.ConnectionClosed as error:
                    return error.rcvd.code

        async def make(**fields):
            headers = {"Authorization": f"Bearer {secrets['read']}"}
            answer = await http.post("/v1/tickets", json=fields or None, headers=headers)
            assert (answer.status_code, answer.headers["Cache-Control"]) == (201, "no-store")
            assert (answer.json()["expires_in_s"], answer.json()["required"]) == (60, True)
            return answer.json()["ticket"]

        ticket = await make()
        assert await code(ticket) == "session.created"
        assert await code(await make(streams=["cam"])) == "session.created"
        assert await code(await make(streams=["hall"])) == 4403
        assert await code(ticket[:-2]) == 4401
        assert (await http.get(f"/v1/streams?ticket={ticket}")).status_code == 401


async def test_a_gateway_without_tokens_gives_tickets_too(gateway):
    await gateway.stream()
    async with gateway.served() as host, gateway.http() as http:
        answer = (await http.post("/v1/tickets")).json()
        assert not answer["required"]
        url = f"ws://{host}/v1/streams/cam/feed?ticket={answer['ticket']}"
        async with connect(url, proxy=None) as socket:
            assert json.loads(await socket.recv())["type"] == "session.created"


def test_a_token_no_header_can_carry():
    with pytest.raises(ConfigError, match="--token"):
        Client("http://127.0.0.1:9", token="a\nb")


def test_the_file_is_a_setting():
    environ = {"STREAMER_GATEWAY__TOKENS_FILE": "/etc/t", "STREAMER_TOKEN": "x"}
    assert load_settings(environ=environ).gateway.tokens_file == "/etc/t"
    assert not load_settings(environ={}).server.allow_anonymous
