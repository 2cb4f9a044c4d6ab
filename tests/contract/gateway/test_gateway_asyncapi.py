"""The AsyncAPI document: its snapshot, and that it holds together and says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import httpx2
import jsonschema
import pytest
from fastapi.routing import APIWebSocketRoute

from streamer import __version__
from streamer.events.schema import FeedOptions, client_message, server_message
from streamer.gateway.app import PARTS, build_app
from streamer.gateway.asyncapi import document, document_text
from streamer.gateway.backend import Backend, Build
from streamer.sources.policy import SourcePolicy
from streamer.store.memory import MemoryStore

pytestmark = pytest.mark.contract

SNAPSHOT = Path(__file__).parents[3] / "docs" / "schema" / "asyncapi.json"
DOCUMENT = document(__version__)


def _refs(node):
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from _refs(each)


def _found(ref):
    node = DOCUMENT
    for part in ref.removeprefix("#/").split("/"):
        node = node[part]
    return node


def test_snapshot_is_up_to_date():
    command = "python -m streamer.gateway.asyncapi > docs/schema/asyncapi.json"
    assert SNAPSHOT.read_text() == document_text(), f"run: {command}"


def test_every_reference_leads_somewhere():
    refs = set(_refs(DOCUMENT))
    assert len(refs) > 30
    for ref in refs:
        assert _found(ref), ref


def test_parts_that_the_standard_asks_for():
    assert DOCUMENT["asyncapi"] == "3.0.0"
    assert DOCUMENT["info"].keys() >= {"title", "version"}
    for operation in DOCUMENT["operations"].values():
        assert operation["action"] in ("send", "receive")
        channel = operation["channel"]["$ref"]
        assert all(ref["$ref"].startswith(f"{channel}/messages/") for ref in operation["messages"])
    for name, message in DOCUMENT["components"]["messages"].items():
        assert re.fullmatch(r"[\w.-]+", name)
        assert message["summary"]
    # A discriminator is a string there and an object in OpenAPI.
    assert "discriminator" not in document_text()


def test_channels_are_the_sockets_that_are_served():
    sockets = {
        route.path
        for part in PARTS
        for route in part.router.routes
        if isinstance(route, APIWebSocketRoute)
    }
    assert {channel["address"] for channel in DOCUMENT["channels"].values()} == sockets
    for channel in DOCUMENT["channels"].values():
        parameters = set(re.findall(r"{(\w+)}", channel["address"]))
        assert channel.get("parameters", {}).keys() == parameters
        query = channel["bindings"]["ws"]["query"]["properties"]
        assert query.keys() >= {*FeedOptions.model_fields, "after", "strict", "ticket"}


@pytest.mark.parametrize(
    ("action", "union"), [("send", server_message), ("receive", client_message)]
)
def test_messages_are_those_of_the_protocol(action, union):
    mapping = union.json_schema()["discriminator"]["mapping"]
    told = DOCUMENT["operations"][f"{action}OnFeed"]["messages"]
    assert {ref["$ref"].rpartition("/")[2] for ref in told} == set(mapping)
    for kind in mapping:
        payload = _found(DOCUMENT["components"]["messages"][kind]["payload"]["$ref"])
        assert payload["properties"]["type"]["const"] == kind
        jsonschema.Draft7Validator.check_schema(payload)


async def test_it_is_served():
    app = build_app(
        Backend(store=MemoryStore(), policy=SourcePolicy(), build=Build(version=__version__))
    )
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
        assert (await client.get("/asyncapi.json")).json() == DOCUMENT
