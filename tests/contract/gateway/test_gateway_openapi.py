"""The published OpenAPI document is what the app says of itself.

After a wanted change: ``python tests/contract/gateway/test_gateway_openapi.py`` writes it anew.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamer import __version__
from streamer.events.schema import FeedOptions
from streamer.gateway.app import build_app
from streamer.gateway.backend import Backend, Build
from streamer.sources.policy import SourcePolicy
from streamer.store.memory import MemoryStore

pytestmark = pytest.mark.contract

DOCUMENT = Path(__file__).parents[3] / "docs" / "schema" / "openapi.json"
METHODS = {"get", "post", "put", "patch", "delete"}


def _openapi():
    backend = Backend(store=MemoryStore(), policy=SourcePolicy(), build=Build(version=__version__))
    return build_app(backend).openapi()


def _operations():
    return [
        (f"{method.upper()} {path}", operation)
        for path, methods in _openapi()["paths"].items()
        for method, operation in methods.items()
        if method in METHODS
    ]


def _text():
    return json.dumps(_openapi(), indent=1, ensure_ascii=False) + "\n"


def test_document_is_up_to_date():
    assert json.loads(DOCUMENT.read_text()) == json.loads(_text()), f"run: python {__file__}"


def test_every_operation_is_explained():
    operations = _operations()
    assert len(operations) == 21
    for name, operation in operations:
        assert operation.get("summary"), name
        assert operation["tags"], name


def test_refused_requests_are_problems():
    for name, operation in _operations():
        for status, answer in operation["responses"].items():
            if status >= "400" and not name.endswith(("healthz", "readyz")):
                assert list(answer["content"]) == ["application/problem+json"], (name, status)


def test_the_query_of_a_feed_is_described():
    parameters = _openapi()["paths"]["/v1/streams/{stream}/feed"]["get"]["parameters"]
    found = {each["name"]: each for each in parameters if each["in"] == "query"}
    assert found.keys() == {"after", "strict", "ticket", *FeedOptions.model_fields}
    assert found["types"]["schema"]["type"] == "array"
    assert found["types"]["explode"] is False  # with commas
    assert found["top_k"]["schema"] == {"type": "integer", "minimum": 1}


def test_what_needs_the_store_may_be_out_of_reach():
    for name, operation in _operations():
        if {"streams", "history", "pictures", "models"}.intersection(operation["tags"]):
            assert "the store is out of reach" in operation["responses"]["503"]["description"], name


if __name__ == "__main__":
    DOCUMENT.write_text(_text())
