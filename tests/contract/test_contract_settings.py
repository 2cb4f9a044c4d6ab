"""The published schema of the settings file is that of the settings.

After a wanted change: ``streamer config schema > docs/schema/settings.json``.
"""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from streamer.cli.config import schema_text
from streamer.settings import Settings

pytestmark = pytest.mark.contract

SNAPSHOT = Path(__file__).parents[2] / "docs" / "schema" / "settings.json"


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = json.loads(schema_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_snapshot_is_current() -> None:
    assert SNAPSHOT.read_text() == schema_text(), (
        "run: streamer config schema > docs/schema/settings.json"
    )


def test_every_default_is_valid(validator: jsonschema.Draft202012Validator) -> None:
    validator.validate(Settings().model_dump(mode="json"))
    validator.validate({})


@pytest.mark.parametrize(
    ("text", "ok"),
    [
        ("sampling: {fps: 8}", True),
        ("horizons_s: [1, 2]", True),
        ("sampling: {fsp: 8}", False),
        ("samplng: {fps: 8}", False),
        ("server: {port: many}", False),
        ("model: {dtype: float16}", False),
        ("mode: sideways", False),
    ],
)
def test_it_knows_files_as_the_service_does(
    validator: jsonschema.Draft202012Validator, text: str, ok: bool
) -> None:
    assert validator.is_valid(yaml.safe_load(text)) == ok


def test_every_value_is_described() -> None:
    schema = json.loads(schema_text())
    silent = {
        f"{name}.{field}"
        for name, definition in schema["$defs"].items()
        for field, entry in definition["properties"].items()
        if "description" not in entry
    }
    assert silent == set()
