"""Log lines keep the facts that a call gave."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from streamer.prometheus_meter import PrometheusMeter
from streamer.telemetry import BothMeters, NullMeter, set_up_logging, tell

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("streamer")
    before = (logger.handlers[:], logger.level, logger.propagate)
    last_resort = logging.lastResort
    yield logger
    logger.handlers[:], logger.level, logger.propagate = before
    logging.lastResort = last_resort


def test_json_lines_carry_extra_facts() -> None:
    out = io.StringIO()
    set_up_logging(format="json", stream=out)
    logging.getLogger("streamer.x").info(
        "session over", extra={"stream": "cam", "ending": "ended", "_mark": 1}
    )
    entry = json.loads(out.getvalue())
    assert entry.pop("time").endswith("Z")
    assert entry == {
        "level": "info",
        "logger": "streamer.x",
        "message": "session over",
        "stream": "cam",
        "ending": "ended",
    }


def test_warnings_of_libraries_have_the_same_form() -> None:
    library = logging.Logger("library")  # without a parent, so without handlers
    out = io.StringIO()
    set_up_logging(format="json", stream=out)
    library.info("quiet")
    library.warning("odd boundary %d", 45)
    entry = json.loads(out.getvalue())
    assert (entry["logger"], entry["message"]) == ("library", "odd boundary 45")


def test_plain_lines_are_for_people() -> None:
    out = io.StringIO()
    set_up_logging(format="plain", stream=out)
    logging.getLogger("streamer.x").warning("store out of reach", extra={"error": "restarts"})
    assert out.getvalue().endswith("warning store out of reach error=restarts\n")


@pytest.mark.parametrize("format", ["json", "plain"])
def test_exceptions_are_kept(format: str) -> None:
    out = io.StringIO()
    set_up_logging(format=format, stream=out)  # type: ignore[arg-type]
    try:
        raise ZeroDivisionError("a bug")
    except ZeroDivisionError:
        logging.getLogger("streamer.x").exception("session broke")
    assert "ZeroDivisionError: a bug" in out.getvalue()


def test_the_level_is_kept_and_a_second_set_up_replaces_the_first() -> None:
    first, second = io.StringIO(), io.StringIO()
    set_up_logging(level="debug", stream=first)
    set_up_logging(level="warning", stream=second)
    logging.getLogger("streamer.x").info("quiet")
    logging.getLogger("streamer.x").error("loud")
    assert first.getvalue() == ""
    assert json.loads(second.getvalue())["message"] == "loud"


def test_the_null_meter_takes_what_the_others_take() -> None:
    meter = NullMeter()
    meter.add("streamer_clips_total", stream="cam", fate="published")
    meter.observe("streamer_batch_size", 3.0, stage="encode")
    meter.observe("streamer_surprise", 0.1, stream="cam")


@pytest.mark.parametrize(
    ("name", "labels", "sentence"),
    [
        ("streamer_clip_total", {"stream": "cam"}, "not in"),
        ("streamer_clips_total", {"stream": "cam"}, "labels"),
        ("streamer_clips_total", {"stream": "cam", "fate": "lost"}, "fate is one of"),
        ("streamer_feed_gaps_total", {"reason": "slow_subscriber", "stream": "cam"}, "labels"),
        ("streamer_subscribers", {}, "is a gauge, not a counter"),
    ],
)
def test_what_is_not_in_the_table_is_refused(
    name: str, labels: dict[str, str], sentence: str
) -> None:
    for meter in (NullMeter(), PrometheusMeter(), BothMeters(NullMeter(), NullMeter())):
        with pytest.raises(ValueError, match=sentence):
            meter.add(name, **labels)


def test_an_observation_is_no_count() -> None:
    with pytest.raises(ValueError, match="is a counter, not a gauge or histogram"):
        NullMeter().observe("streamer_refused_total", 1, stage="encode", reason="queue_full")


def test_what_people_are_told_is_a_log_line_where_the_log_is_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = io.StringIO()
    set_up_logging(level="error", format="json", stream=out)
    tell("ready at http://h")
    found = json.loads(out.getvalue())
    assert (found["message"], found["level"]) == ("ready at http://h", "info")
    set_up_logging(format="plain", stream=out)
    tell("stopped.")
    assert capsys.readouterr().err == "streamer: stopped.\n"
