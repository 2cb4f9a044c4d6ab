"""A wrong setting is shown in the sentence about it, a secret one is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.errors import ConfigError
from streamer.settings import load_settings

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("text", ["password: 4711", "url: [redis, 4711]", "password: {a: 4711}"])
def test_secrets_are_not_shown(tmp_path: Path, text: str) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(f"store: {{{text}}}\n")
    with pytest.raises(ConfigError, match="store") as caught:
        load_settings(config=file, environ={})
    assert "4711" not in str(caught.value)


def test_others_are_shown() -> None:
    with pytest.raises(ConfigError, match="not '4711x'"):
        load_settings(environ={"STREAMER_STORE__MAX_EVENTS": "4711x"})


def test_the_store_is_named_by_the_environment() -> None:
    url = "redis://:pw@valkey:6379/0"
    settings = load_settings(environ={"STREAMER_STORE__URL": url})
    assert settings.store.url == url
    assert "pw" not in repr(settings)
