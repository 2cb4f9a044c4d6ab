"""The tokens file, tickets made from it, and where a service may be bound."""

from __future__ import annotations

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from streamer.errors import ConfigError
from streamer.gateway.auth import Gate, NotAuthenticated, ScopeMissing, check_exposure
from streamer.gateway.config import GatewayConfig
from streamer.gateway.ticket_codec import sign, verify
from streamer.gateway.tokens import TokenFile, Tokens, new_token, read_tokens

pytestmark = pytest.mark.unit

NOW_S = 1_800_000_000


def _write(path, *tokens):
    path.write_text("".join(f"- {json.dumps(t.model_dump(mode='json'))}\n" for t in tokens))
    return path


def _gate(path, *, now_s=NOW_S, **config):
    config = GatewayConfig(tokens_file=str(path), **config)
    return Gate(config, wall=lambda: now_s * 1_000_000_000)


def _bearer(secret):
    return Headers({"Authorization": f"Bearer {secret}"})


def test_a_new_token_is_found_by_its_secret_alone():
    secret, token = new_token("door", ["read", "write"])
    other, _ = new_token("door", ["read"])
    tokens = Tokens([token])
    assert secret.startswith("streamer_")
    assert secret not in token.model_dump_json()
    assert tokens.find(secret) == token
    assert tokens.find(other) is tokens.find("") is tokens.find("ü\udcff") is None
    assert (token.has("write"), token.has("plan")) == (True, False)


@pytest.mark.parametrize(("name", "scopes"), [("a b", ["read"]), ("a", []), ("a", ["reed"])])
def test_a_token_that_cannot_be_made(name, scopes):
    with pytest.raises(ConfigError, match="cannot be made"):
        new_token(name, scopes)


def test_yaml_and_json_are_read(tmp_path):
    _, token = new_token("door", ["admin"])
    assert read_tokens(_write(tmp_path / "t.yaml", token)).named("door") == token
    (tmp_path / "t.json").write_text(json.dumps([token.model_dump(mode="json")]))
    assert read_tokens(tmp_path / "t.json").named("door") == token


DIGEST = "ab" * 32


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "holds no token"),
        ("[]", "holds no token"),
        ("{a: [", r"neither YAML nor JSON \(line 1\)"),
        ("- {name: a}\n\nError: no", r"\(line 3\)"),
        (
            f"- {{name: a, sha256: {DIGEST}, scopes: [read]}}\n- {{name: b}}",
            r"\(line 2\): 1.sha256",
        ),
        ("\x80\x81", "neither YAML nor JSON"),
        ("- {name: 2024-13-45}", "neither YAML nor JSON"),
        ("tokens: 3", "valid list"),
        ("- {name: a, sha256: hunter2, scopes: [read]}", "0.sha256"),
        (f"- {{name: a, sha256: {DIGEST}, scopes: [reed]}}", "0.scopes.0"),
        (f"- {{name: a, sha256: {DIGEST}, scopes: [read], secret: hunter2}}", "0.secret"),
        (
            "\n".join(f"- {{name: a, sha256: {d * 32}, scopes: [read]}}" for d in ("ab", "cd")),
            "same name twice",
        ),
        (
            "\n".join(f"- {{name: {n}, sha256: {DIGEST}, scopes: [read]}}" for n in "ab"),
            "same sha256 twice",
        ),
        ("#" * 300_000, "more than"),
    ],
)
def test_a_bad_file_is_named_and_not_quoted(tmp_path, text, says):
    path = tmp_path / "tokens.yaml"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ConfigError, match=says) as caught:
        read_tokens(path)
    assert str(path) in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_missing_file_stops_the_start(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        Gate(GatewayConfig(tokens_file=str(tmp_path / "none")))


def test_rotation_without_restart(tmp_path, caplog):
    """A good file replaces the tokens, a bad or missing one is told once and changes nothing."""
    now_s = [0]
    (old, old_token), (new, token) = new_token("door", ["read"]), new_token("door", ["read"])
    path = _write(tmp_path / "tokens.yaml", old_token)
    file = TokenFile(path, clock=lambda: now_s[0] * 1_000_000_000)

    def found(secret):
        now_s[0] += 2
        return file.current().find(secret) is not None

    with caplog.at_level(logging.INFO, "streamer"):
        assert found(old)
        path.write_text("- {name: door, sha256: half a li")
        assert found(old)
        assert found(old)
        path.unlink()
        assert found(old)
        _write(path, token)
        assert not found(old)
        assert found(new)
    said = [record.message for record in caplog.records]
    assert said == ["tokens file refused, the old tokens stay"] * 2 + ["tokens file read again"]


def test_the_file_is_looked_at_once_a_second(tmp_path):
    (_, token), (new, other) = new_token("a", ["read"]), new_token("b", ["read"])
    now_ns = [0]
    file = TokenFile(_write(tmp_path / "t", token), clock=lambda: now_ns[0])
    _write(tmp_path / "t", token, other)
    now_ns[0] = 999_999_999
    assert file.current().find(new) is None
    now_ns[0] = 1_000_000_000
    assert file.current().find(new) == other


def test_no_file_admits_everybody():
    gate = Gate(GatewayConfig())
    grant = gate.admit(Headers(), "admin")
    assert (gate.is_open, grant.name, gate.is_valid(grant)) == (True, "", True)
    ticket, _ = gate.ticket(grant, None)
    assert gate.admit_feed(Headers(), ticket=ticket).streams is None


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic abc", "abc"])
def test_what_is_no_bearer_header(tmp_path, header):
    gate = _gate(_write(tmp_path / "t", new_token("a", ["read"])[1]))
    with pytest.raises(NotAuthenticated):
        gate.admit(Headers({"Authorization": header}), "read")


def test_a_ticket_opens_feeds_for_a_minute(tmp_path):
    secret, token = new_token("door", ["read"])
    path = _write(tmp_path / "t", token)
    gate = _gate(path)
    ticket, life_s = gate.ticket(gate.admit(_bearer(secret), "read"), ["kitchen"])
    assert life_s == 60
    grant = _gate(path, now_s=NOW_S + 59).admit_feed(Headers(), ticket=ticket)  # another replica
    assert (grant.name, grant.streams) == ("door", {"kitchen"})
    grant.check_stream("kitchen")
    with pytest.raises(ScopeMissing, match="hall"):
        grant.check_stream("hall")
    with pytest.raises(NotAuthenticated, match="no longer"):
        _gate(path, now_s=NOW_S + 60).admit_feed(Headers(), ticket=ticket)
    with pytest.raises(NotAuthenticated):  # it is no token
        gate.admit(_bearer(ticket), "read")
    with pytest.raises(NotAuthenticated):  # a bad header is not made good by a ticket
        gate.admit_feed(_bearer("wrong"), ticket=ticket)


def test_a_ticket_dies_with_its_token(tmp_path):
    secret, token = new_token("door", ["read"])
    _, other = new_token("door", ["read"])
    gate = _gate(_write(tmp_path / "t", token))
    grant = gate.admit(_bearer(secret), "read")
    ticket, _ = gate.ticket(grant, None)
    rotated = _gate(_write(tmp_path / "u", other))
    with pytest.raises(NotAuthenticated):
        rotated.admit_feed(Headers(), ticket=ticket)
    assert gate.is_valid(grant)
    assert not rotated.is_valid(grant)
    lessened = _gate(_write(tmp_path / "v", token.model_copy(update={"scopes": ("write",)})))
    with pytest.raises(ScopeMissing, match="'read'"):
        lessened.admit_feed(Headers(), ticket=ticket)


TOKENS = [new_token(name, ["read"])[1] for name in "ab"]


@given(st.text(max_size=200) | st.binary(max_size=50).map(lambda b: b.hex() + "." + b.hex()))
def test_what_is_no_ticket(text):
    assert verify(text, Tokens(TOKENS), now_s=0) is None


@given(st.data())
def test_a_ticket_changed_anywhere_is_none(data):
    ticket = sign(TOKENS[0], expires_s=100, streams=["a", "b"])
    at = data.draw(st.integers(0, len(ticket) - 1))
    other = data.draw(st.characters(codec="ascii").filter(lambda c: c != ticket[at]))
    changed = ticket[:at] + other + ticket[at + 1 :]
    assert verify(ticket, Tokens(TOKENS), now_s=99) is not None
    assert verify(changed, Tokens(TOKENS), now_s=99) is None


@pytest.mark.parametrize(
    ("host", "is_private"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("::ffff:127.0.0.1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.0.2.7", False),
        ("camera-box", False),
    ],
)
def test_exposure(host, is_private):
    check_exposure(host, has_tokens=True, allow_anonymous=False)
    check_exposure(host, has_tokens=False, allow_anonymous=True)
    if is_private:
        check_exposure(host, has_tokens=False, allow_anonymous=False)
    else:
        with pytest.raises(ConfigError, match="streamer token new"):
            check_exposure(host, has_tokens=False, allow_anonymous=False)
