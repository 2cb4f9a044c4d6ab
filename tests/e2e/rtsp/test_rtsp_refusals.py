"""Cameras that cannot be opened, and what is said about them."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from urllib.parse import quote

import pytest
from rtsp_camera import LOOPBACK
from rtsp_network import Proxy, SilentServer, free_port, self_signed

from streamer.errors import SourceDenied, SourceForbidden
from streamer.sources.policy import SourcePolicy
from streamer.sources.rtsp import RtspSource

pytestmark = pytest.mark.e2e

PASSWORD = "p@:/#?%&é 7"


def test_refused(watch) -> None:
    watched = watch(f"rtsp://127.0.0.1:{free_port()}/cam")
    watched.wait_state("reconnecting", reason="refused")
    assert watched.end() < 1.0


def test_silent_server_is_no_answer_and_stop_waits_for_the_open_timeout_at_most(
    watch, config
) -> None:
    with SilentServer() as server:
        watched = watch(f"rtsp://user:geheim@127.0.0.1:{server.port}/cam")
        watched.wait_state("reconnecting", reason="no_answer")
        assert "geheim" not in watched.texts()
        assert watched.end() < 2 * config.open_timeout_s + 1


def test_right_password_with_special_characters(camera, watch) -> None:
    watched = watch(camera(user="ad@min", password=PASSWORD).url)
    watched.wait_state("live")
    assert quote(PASSWORD, safe="") not in watched.texts()


def test_wrong_password_gives_up_after_three_tries(camera, watch, caplog) -> None:
    caplog.set_level("DEBUG")
    cam = camera(user="admin", password=PASSWORD)
    wrong = cam.url.replace("7@", "8@")
    watched = watch(wrong)
    watched.wait_end()
    assert isinstance(watched.error, SourceDenied)
    failed = [said for _, said in watched.states if said.state == "failed"]
    assert [said.retry_in_s for said in failed] == [0.1, 0.1, None]
    assert {said.reason for said in failed} == {"unauthorized"}
    chain, error = [], watched.error
    while error is not None:
        chain.append(f"{error} {error.args}")
        error = error.__cause__ or error.__context__
    shown = "\n".join([*chain, watched.texts(), caplog.text])
    assert "admin" not in shown and quote(PASSWORD[:-1], safe="") not in shown


def test_no_credentials_for_a_protected_camera(camera, watch) -> None:
    cam = camera(user="admin", password=PASSWORD)
    watched = watch(f"rtsp://127.0.0.1:{cam.port}/cam")
    watched.wait_state("failed", reason="unauthorized")


def test_wrong_path(camera, watch) -> None:
    cam = camera()
    watched = watch(f"rtsp://127.0.0.1:{cam.port}/other")
    watched.wait_state("failed", reason="not_found")
    assert watched.states[-1][1].retry_in_s == 0.2
    assert watched.end() < 1.0


def test_audio_only(camera, watch) -> None:
    watched = watch(camera(audio_only=True).url)
    watched.wait_state("failed", reason="no_video")


def test_pictures_above_the_limit_are_refused_at_the_opening(camera, watch, config) -> None:
    watched = watch(camera().url, config=replace(config, max_pixels=96 * 95))
    watched.wait_state("failed", reason="too_large")
    assert not watched.pictures


@pytest.mark.parametrize(
    ("side", "state", "reason"),
    [(112, "failed", "too_large"), (192, "reconnecting", "decode_errors")],
)
def test_pictures_that_grow_above_the_limit_are_not_shown(
    camera, watch, config, side: int, state: str, reason: str
) -> None:
    cam = camera()
    limited = replace(config, max_pixels=96 * 96, bad_window_s=0.5)
    watched = watch(cam.url, config=limited)
    watched.wait_pictures(3)
    cam.resize(side, side)
    watched.wait_state(state, reason=reason)
    assert set(watched.sizes) == {(96, 96)}


def test_the_policy_is_asked_again_before_each_connection() -> None:
    answers = iter([LOOPBACK, SourcePolicy()])

    class Rebound:
        def check(self, url: str) -> None:
            next(answers).check(url)

    source = RtspSource(f"rtsp://127.0.0.1:{free_port()}/cam", policy=LOOPBACK)
    source._policy = Rebound()
    began = time.monotonic()
    with pytest.raises(SourceForbidden, match="loopback"):
        source.run(sink=lambda picture: None, report=lambda state: None, stop=threading.Event())
    assert time.monotonic() - began < 5


def test_rtsps_takes_the_certificates_it_is_told_to_take(camera, watch, config, tmp_path) -> None:
    (tmp_path / "other").mkdir()
    tls, own = self_signed(tmp_path)
    _, other = self_signed(tmp_path / "other")
    with Proxy(camera().port, tls=tls) as proxy:
        url = f"rtsps://127.0.0.1:{proxy.port}/cam"
        watch(url).wait_state("live")
        watch(url, config=replace(config, tls_ca_file=str(own))).wait_state("live")
        impostor = watch(url, config=replace(config, tls_ca_file=str(other)))
        impostor.wait_state("reconnecting", reason="unreachable")
        assert not impostor.pictures


def test_digest_authentication(camera, watch) -> None:
    cam = camera(user="admin", password=PASSWORD, digest=True)
    watch(cam.url).wait_state("live")
    wrong = watch(cam.url.replace("7@", "8@"))
    wrong.wait_state("failed", reason="unauthorized")
    wrong.wait_end()
    assert isinstance(wrong.error, SourceDenied)
    assert quote(PASSWORD[:-1], safe="") not in wrong.texts()
