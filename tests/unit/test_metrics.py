"""The table of metrics, and the meter that Prometheus reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_text import read_samples

from streamer.metrics import ALL_STATES, METRICS
from streamer.prometheus_meter import PrometheusMeter
from streamer.telemetry import BothMeters

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]


def samples(meter: PrometheusMeter) -> dict[str, float]:
    return read_samples(meter.exposition().decode())


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_names_units_and_buckets_are_regular(metric) -> None:
    assert re.fullmatch(r"streamer(_[a-z]+)+", metric.name)
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert metric.name.endswith("_seconds") == (metric.unit == "seconds")
    assert bool(metric.buckets) == (metric.kind == "histogram")
    assert list(metric.buckets) == sorted(set(metric.buckets))
    assert metric.help.endswith(".")


def test_states_are_those_of_sources() -> None:
    assert {"starting", "live", "reconnecting", "failed"} <= set(ALL_STATES)


def calls() -> Iterator[tuple[str, str, set[str]]]:
    """Method, metric and labels of each call on a meter in the program."""
    for top in ("streamer", "deployments"):
        for path in (ROOT / top).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                match node:
                    case ast.Call(
                        func=ast.Attribute(attr="add" | "observe" as method),
                        args=[ast.Constant(value=str(name)), *_],
                        keywords=keywords,
                    ) if name.startswith("streamer_"):
                        yield method, name, {keyword.arg or "**" for keyword in keywords}


def test_every_call_is_in_the_table_and_every_entry_is_used() -> None:
    found = list(calls())
    for method, name, labels in found:
        assert set(METRICS[name].labels) == labels, name
        assert (METRICS[name].kind == "counter") == (method == "add"), name
    assert {name for _, name, _ in found} == set(METRICS)


def test_counters_add_gauges_replace_histograms_collect() -> None:
    meter = PrometheusMeter()
    for value in (2, 3):
        meter.add("streamer_frames_total", value, stream="cam", fate="used")
        meter.observe("streamer_surprise", value, stream="cam")
        meter.observe("streamer_batch_size", value, stage="encode")
    found = samples(meter)
    assert found["streamer_frames_total{fate=used,stream=cam}"] == 5
    assert found["streamer_surprise{stream=cam}"] == 3
    sizes = [
        found[f"streamer_batch_size_bucket{{le={bound},stage=encode}}"]
        for bound in ("1.0", "2.0", "4.0", "+Inf")
    ]
    assert sizes == [0, 1, 2, 2]
    assert not any("_created" in name for name in found)


def test_counters_with_known_labels_begin_at_zero() -> None:
    found = samples(PrometheusMeter())
    for reason in ("slow_subscriber", "retention", "restart"):
        assert found[f"streamer_feed_gaps_total{{reason={reason}}}"] == 0
    assert not any("frames" in name for name in found)


def test_series_of_streams_that_are_gone_are_forgotten() -> None:
    meter = PrometheusMeter()
    for stream in ("kept", "gone"):
        meter.add("streamer_frames_total", stream=stream, fate="used")
        meter.observe("streamer_clip_staleness_seconds", 0.1, stream=stream)
        meter.observe("streamer_surprise", 0.1, stream=stream)
    meter.keep_streams(["kept", "new"])
    text = meter.exposition().decode()
    assert 'stream="kept"' in text and 'stream="gone"' not in text
    meter.observe("streamer_surprise", 0.1, stream="gone")
    assert 'stream="gone"' in meter.exposition().decode()


def test_streams_that_come_and_go_do_not_pile_up() -> None:
    meter = PrometheusMeter(max_streams=2)
    for stream in ("a", "b", "a", "c"):
        meter.add("streamer_frames_total", stream=stream, fate="used")
    found = samples(meter)
    assert found["streamer_frames_total{fate=used,stream=a}"] == 2
    assert found["streamer_frames_total{fate=used,stream=c}"] == 1
    assert not any("stream=b" in name for name in found)


def test_two_meters_do_not_share_numbers_unless_told_both() -> None:
    first, second = PrometheusMeter(), PrometheusMeter()
    first.observe("streamer_subscribers", 1)
    BothMeters(first, second).add("streamer_feed_gaps_total", reason="restart")
    assert samples(first)["streamer_subscribers"] == 1
    assert samples(second).get("streamer_subscribers", 0) == 0
    assert samples(first)["streamer_feed_gaps_total{reason=restart}"] == 1
    assert samples(second)["streamer_feed_gaps_total{reason=restart}"] == 1
