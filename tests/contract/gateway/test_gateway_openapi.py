"""The published OpenAPI document is what the app says of itself.

After a wanted change: ``python tests/contract/gateway/test_gateway_openapi.py`` writes it anew.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamer import __version__
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
    assert len(operations) == 19
    for name, operation in operations:
        assert operation.get("summary"), name
        assert operation["tags"], name


def test_refused_requests_are_problems():
    for name, operation in _operations():
        for status, answer in operation["responses"].items():
            if status >= "400" and not name.endswith(("healthz", "readyz")):
                assert list(answer["content"]) == ["application/problem+json"], (name, status)


if __name__ == "__main__":
    DOCUMENT.write_text(_text())
