"""Credentials never show, whatever the password is made of."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.sources.redact import redact, redact_text

pytestmark = pytest.mark.unit

# A marker that no other part of the URL holds: it must be gone, whatever stands around it.
MARKER = "Zq9"
NOISE = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), max_size=12)


@given(user=NOISE, before=NOISE, after=NOISE)
def test_raw_passwords_never_show(user: str, before: str, after: str) -> None:
    url = f"rtsp://{user}:{before}{MARKER}{after}@cam.example:554/live"
    assert MARKER not in redact(url)
    assert redact(url) == "rtsp://***@cam.example:554/live"
    assert MARKER not in redact_text(f"cannot open '{url}': refused")


@given(before=NOISE, after=NOISE)
def test_encoded_passwords_never_show(before: str, after: str) -> None:
    password = quote(before + MARKER + after, safe="")
    assert redact(f"rtsp://u:{password}@cam.example/live") == "rtsp://***@cam.example/live"


@given(
    name=st.sampled_from(
        ["password", "PWD", "access_token", "api-key", "auth", "sig", "p%61ss", "pw"]
    ),
    value=st.text(st.characters(codec="ascii", categories=["L", "N"])),
)
def test_secret_parameters_never_show(name: str, value: str) -> None:
    url = f"https://cam.example/live?channel=1&{name}={MARKER}{value}&fps=5"
    assert redact(url) == f"https://cam.example/live?channel=1&{name}=***&fps=5"


@given(text=st.text())
def test_twice_is_once(text: str) -> None:
    url = f"rtsp://{text}"
    assert redact(redact(url)) == redact(url)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("rtsp://cam.example/live?fps=5", "rtsp://cam.example/live?fps=5"),
        ("rtsp://10.0.0.1/user=admin_password=abc_channel=1", "rtsp://10.0.0.1/user=***"),
        ("rtsp:admin:abc@cam.example/live", "rtsp:***@cam.example/live"),
        ("file:///clips/cam@1.mp4", "file:///clips/cam@1.mp4"),
        ("synthetic:bouncing?seed=1", "synthetic:bouncing?seed=1"),
        ("admin:abc@cam.example", "admin:***@cam.example"),
        ("", ""),
    ],
)
def test_shown(url: str, shown: str) -> None:
    assert redact(url) == shown


def test_texts_with_several_urls() -> None:
    text = (
        "[Errno 111] refused: 'rtsp://a:b@one/x' (was \"rtsps://c:d'e@two/y\"), see rtsp://three/z"
    )
    shown = redact_text(text)
    assert shown == (
        "[Errno 111] refused: 'rtsp://***@one/x' (was \"rtsps://***@two/y\"), see rtsp://three/z"
    )
