"""RTSP parts that need no camera: options, failures, states, pictures."""

from __future__ import annotations

import errno
import threading
from collections import Counter
from fractions import Fraction
from itertools import count
from types import SimpleNamespace

import av
import pytest

from streamer.clock import monotonic_ns
from streamer.errors import ConfigError, SourceDenied, SourceUnavailable, SourceUnsupported
from streamer.records import SourceState
from streamer.sources.rtsp_config import RtspConfig
from streamer.sources.rtsp_connection import rtsp_options
from streamer.sources.rtsp_failures import ConnectionEnded, classify, failure, translated
from streamer.sources.rtsp_pictures import Pictures
from streamer.sources.rtsp_states import LiveStates
from streamer.sources.rtsp_transport import Transport

pytestmark = pytest.mark.unit

CONFIG = RtspConfig()


def test_options_are_those_that_were_measured() -> None:
    assert rtsp_options("rtsp://cam/x", config=CONFIG) == {
        "rtsp_transport": "tcp",
        "protocol_whitelist": "tcp,rtp",
        "allowed_media_types": "video",
        "timeout": "5000000",
        "probesize": "32",
    }
    probing = rtsp_options("rtsp://cam/x", config=CONFIG, probing=True)
    assert "probesize" not in probing
    assert rtsp_options("RTSPS://cam/x", config=CONFIG)["protocol_whitelist"] == "tcp,rtp,tls"
    by_udp = rtsp_options("rtsp://cam/x", config=CONFIG, transport="udp")
    assert (by_udp["rtsp_transport"], by_udp["protocol_whitelist"]) == ("udp", "tcp,rtp,udp")
    trusting = rtsp_options("rtsps://cam/x", config=RtspConfig(tls_ca_file="/ca.pem"))
    assert (trusting["tls_verify"], trusting["ca_file"]) == ("1", "/ca.pem")


@pytest.mark.parametrize(
    ("error", "phase", "timed_out", "reason"),
    [
        (av.error.ConnectionRefusedError(errno.ECONNREFUSED, "x"), "open", False, "refused"),
        (av.error.OSError(errno.EIO, "x"), "open", False, "unreachable"),
        (av.error.OSError(errno.EHOSTUNREACH, "x"), "open", False, "unreachable"),
        (av.error.InvalidDataError(1, "x"), "open", False, "unreachable"),
        (av.error.InvalidDataError(1, "x"), "open", True, "no_answer"),
        (av.error.InvalidDataError(1, "x"), "read", False, "broken_stream"),
        (av.error.InvalidDataError(1, "x"), "read", True, "stalled"),
        (av.error.TimeoutError(errno.ETIMEDOUT, "x"), "open", True, "no_answer"),
        (av.error.TimeoutError(errno.ETIMEDOUT, "x"), "read", True, "stalled"),
        (av.error.ExitError(1, "x"), "read", True, "stalled"),
        (av.error.HTTPUnauthorizedError(1, "x"), "open", False, "unauthorized"),
        (av.error.HTTPForbiddenError(1, "x"), "open", False, "unauthorized"),
        (av.error.HTTPNotFoundError(1, "x"), "open", False, "not_found"),
        (av.error.HTTPOtherClientError(1, "x"), "open", False, "rejected"),
        (av.error.HTTPServerError(1, "x"), "open", False, "rejected"),
        (av.error.ConnectionResetError(errno.ECONNRESET, "x"), "open", False, "unreachable"),
        (av.error.ConnectionResetError(errno.ECONNRESET, "x"), "read", False, "reset"),
        (av.error.EOFError(1, "x"), "read", False, "reset"),
        (av.error.DecoderNotFoundError(1, "x"), "open", False, "unsupported"),
        (av.error.UnknownError(1, "x"), "read", False, "broken_stream"),
    ],
)
def test_what_an_error_of_ffmpeg_means(error, phase, timed_out: bool, reason: str) -> None:
    assert classify(error, phase=phase, timed_out=timed_out) == reason


def test_translated_errors_carry_nothing_of_ffmpegs_text() -> None:
    def denied() -> None:
        raise av.error.HTTPUnauthorizedError(1, "denied", "rtsp://u:geheim@cam/x")

    with pytest.raises(ConnectionEnded) as caught:
        translated(denied, phase="open", name="rtsp://***@cam/x", timeout_s=5)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert "geheim" not in repr(caught.value)
    assert caught.value.failure.reason == "unauthorized"


@pytest.mark.parametrize(
    ("reason", "error"),
    [("eof", SourceUnavailable), ("no_video", SourceUnsupported), ("unauthorized", SourceDenied)],
)
def test_a_failure_becomes_the_error_of_its_kind(reason: str, error: type[Exception]) -> None:
    found = failure(reason, name="cam").as_error()
    assert type(found) is error
    assert str(found).startswith("cam: ")


def test_wrong_settings() -> None:
    for name in ("open_timeout_s", "read_timeout_s", "stall_s", "max_pixels"):
        with pytest.raises(ConfigError, match=name):
            RtspConfig(**{name: 0})
        with pytest.raises(ConfigError, match=name):
            RtspConfig(**{name: float("nan")})
    with pytest.raises(ConfigError, match="transport"):
        RtspConfig(transport="pigeon")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="switch_after"):
        RtspConfig(switch_after=0)
    with pytest.raises(ConfigError, match="bad_fraction"):
        RtspConfig(bad_fraction=1)


def test_the_third_bad_connection_in_a_row_changes_the_transport_and_back() -> None:
    transport = Transport("auto", is_secure=False, switch_after=3)
    reasons = ["no_key_frame", "eof", "decode_errors", "decode_errors", "eof"]
    seen = [(transport.ended(reason), transport.name) for reason in reasons]
    assert seen == [(False, "tcp")] * 3 + [(True, "udp"), (False, "udp")]
    for _ in range(3):
        transport.ended("decode_errors")
    assert transport.name == "tcp"


def test_a_connection_that_worked_forgets_the_bad_ones() -> None:
    transport = Transport("auto", is_secure=False, switch_after=2)
    transport.ended("decode_errors")
    transport.settled()
    assert not transport.ended("decode_errors")


@pytest.mark.parametrize(
    ("wanted", "is_secure", "name"),
    [("tcp", False, "tcp"), ("udp", False, "udp"), ("udp", True, "tcp"), ("auto", True, "tcp")],
)
def test_a_transport_that_is_asked_for_stays(wanted, is_secure: bool, name: str) -> None:
    transport = Transport(wanted, is_secure=is_secure, switch_after=1)
    assert not transport.ended("decode_errors")
    assert transport.name == name


class Said:
    def __init__(self) -> None:
        self.states: list[SourceState] = []
        self._changed = threading.Condition()

    def __call__(self, state: SourceState) -> None:
        with self._changed:
            self.states.append(state)
            self._changed.notify_all()

    def wait_count(self, count: int) -> list[str]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.states) >= count, timeout=10)
            return [state.state for state in self.states]


def test_stall_is_told_once_from_the_watch_thread_and_live_again() -> None:
    said = Said()
    with LiveStates(said, stall_s=0.02) as states:
        states.picture(monotonic_ns())
        assert said.wait_count(2) == ["live", "stalled"]
        states.picture(monotonic_ns())
        assert said.wait_count(4) == ["live", "stalled", "live", "stalled"]


def test_slow_cameras_get_five_periods() -> None:
    said = Said()
    with LiveStates(said, stall_s=0.001) as states:
        now = monotonic_ns()
        for number in range(5):
            states.picture(now + number * 20_000_000)  # the newest 80 ms ahead: not yet silent
        assert said.wait_count(2)[-1] == "stalled"
        silent_s = (monotonic_ns() - now) / 1e9
    assert silent_s >= 0.08 + 5 * 0.02


def test_no_stall_is_told_while_reconnecting() -> None:
    said = Said()
    with LiveStates(said, stall_s=0.01) as states:
        states.picture(monotonic_ns())
        states.say(SourceState(state="reconnecting", reason="eof"))
        assert not threading.Event().wait(0.05)
    assert "stalled" not in said.wait_count(2)[2:]


class FakeFrame(SimpleNamespace):
    time_base = Fraction(1, 1000)


def frame(number: int, *, corrupt: bool = False, width: int = 8) -> FakeFrame:
    return FakeFrame(width=width, height=8, pts=number * 66, is_corrupt=corrupt)


def packet(*frames: FakeFrame, key: bool = True, error: av.FFmpegError | None = None):
    def decode() -> list[FakeFrame]:
        if error is not None:
            raise error
        return list(frames)

    return SimpleNamespace(
        pts=None, has_sidedata=lambda kind: False, is_keyframe=key, decode=decode
    )


def pictures(**fields: float) -> tuple[Pictures, Counter[str]]:
    counts: Counter[str] = Counter()
    made = Pictures(name="cam", config=RtspConfig(**fields), counts=counts)
    made.connected()
    return made, counts


def test_nothing_is_decoded_before_the_first_key_frame() -> None:
    made, _ = pictures()
    undecodable = av.error.InvalidDataError(1, "x")
    assert list(made.of(packet(key=False, error=undecodable))) == []
    assert [picture.index for picture in made.of(packet(frame(0)))] == [0]
    assert [picture.index for picture in made.of(packet(frame(1), key=False))] == [1]


def test_corrupt_pictures_are_counted_and_leave_a_gap_in_the_numbers() -> None:
    made, counts = pictures()
    shown = [p for n in range(4) for p in made.of(packet(frame(n, corrupt=n == 2)))]
    assert [picture.index for picture in shown] == [0, 1, 3]
    assert counts["corrupt"] == 1 and counts["pictures"] == 3


def test_generations_count_connections_and_sizes_and_numbers_go_on() -> None:
    made, _ = pictures()
    shown = list(made.of(packet(frame(0), frame(1, width=16))))
    made.disconnected()
    made.connected()
    shown += made.of(packet(frame(2, width=8)))
    assert [(picture.generation, picture.index) for picture in shown] == [(0, 0), (1, 1), (2, 2)]


def test_no_key_frame_for_too_long() -> None:
    made, _ = pictures(first_frame_s=1e-9)
    with pytest.raises(ConnectionEnded) as caught:
        list(made.of(packet(key=False)))
    assert caught.value.failure.reason == "no_key_frame"


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock finds it 50 ms later."""
    times = count(step=50_000_000)
    monkeypatch.setattr("streamer.sources.rtsp_pictures.monotonic_ns", lambda: next(times))
    monkeypatch.setattr("streamer.sources.rtsp_pictures.both_ns", lambda: (next(times), 0))


@pytest.mark.usefixtures("ticking")
def test_mostly_broken_pictures_end_the_connection_after_the_window() -> None:
    broken = packet(error=av.error.InvalidDataError(1, "x"))
    made, counts = pictures(bad_window_s=1.5)
    with pytest.raises(ConnectionEnded) as caught:
        for _ in range(100):
            list(made.of(broken))
    assert caught.value.failure.reason == "decode_errors"
    assert counts["undecodable"] == 11  # three looks, 150 ms, for each packet


@pytest.mark.usefixtures("ticking")
def test_some_broken_pictures_are_only_counted() -> None:
    broken = packet(error=av.error.InvalidDataError(1, "x"))
    made, counts = pictures(bad_window_s=1.5)
    for number in range(100):
        list(made.of(broken if number % 3 == 0 else packet(frame(number))))
    assert counts["undecodable"] == 34
