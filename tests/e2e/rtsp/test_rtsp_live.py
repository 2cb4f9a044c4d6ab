"""A working camera, and cameras that stop working while they are watched."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise

import pytest
from rtsp_network import Proxy
from rtsp_reports import GarblingProxy

from streamer.backoff import Backoff

pytestmark = pytest.mark.e2e


def test_pictures_flow_with_times_and_numbers(camera, watch) -> None:
    watched = watch(camera().url)
    watched.wait_for(lambda: any(picture.clock == "rtcp" for picture in watched.pictures))
    watched.wait_pictures(15)
    pictures = watched.pictures
    assert [picture.index for picture in pictures] == list(range(len(pictures)))
    assert {picture.generation for picture in pictures} == {0}
    assert pictures[0].pts_s is None and pictures[0].clock == "arrival"
    assert pictures[1].clock == "media"
    steps = [b.pts_s - a.pts_s for a, b in pairwise(pictures[1:])]
    assert steps == pytest.approx([1 / 15] * len(steps), abs=1e-4)
    age_s = (time.time_ns() - pictures[-1].captured_at_ns) / 1e9
    assert pictures[-1].clock == "rtcp"
    assert -0.1 < age_s < 2
    assert set(watched.sizes) == {(96, 96)}
    assert [said.state for _, said in watched.states] == ["starting", "live"]


def test_stop_while_live_takes_about_one_frame_period(camera, watch) -> None:
    watched = watch(camera().url)
    watched.wait_state("live")
    assert watched.end() < 1.0
    assert watched.error is None


def test_stall_is_told_while_the_reader_is_blocked_and_ends_by_itself(
    camera, watch, config
) -> None:
    cam = camera()
    watched = watch(cam.url, config=replace(config, read_timeout_s=8.0))
    watched.wait_pictures(10)
    cam.stall()
    began = time.monotonic()
    assert watched.wait_state("stalled", reason="no_frames") - began < 1.5
    before = len(watched.states)
    cam.resume()
    watched.wait_state("live", after=before)
    assert watched.pictures[-1].generation == 0


def test_long_stall_reconnects_as_a_new_generation(camera, watch) -> None:
    cam = camera()
    watched = watch(cam.url)
    watched.wait_pictures(5)
    cam.stall()
    watched.wait_state("reconnecting", reason="stalled")
    before = len(watched.states)
    cam.resume()
    watched.wait_state("live", after=before)
    assert watched.pictures[-1].generation == 1
    indices = [picture.index for picture in watched.pictures]
    assert indices == list(range(len(indices)))
    assert "stalled" in [said.state for _, said in watched.states]


def test_stall_inside_a_packet_recovers_by_a_new_connection(camera, watch) -> None:
    cam = camera()
    with Proxy(cam.port) as proxy:
        watched = watch(f"rtsp://127.0.0.1:{proxy.port}/cam")
        watched.wait_pictures(5)
        proxy.stall_inside_a_packet()
        watched.wait_state("reconnecting", reason="stalled")
        proxy.heal()
        before = len(watched.states)
        watched.wait_state("live", after=before)
        watched.wait_pictures(20)
        assert watched.pictures[-1].generation == 1


def test_killed_camera_is_a_failure_and_its_restart_is_found(camera, watch) -> None:
    cam = camera()
    watched = watch(cam.url)
    watched.wait_pictures(5)
    cam.kill()
    watched.wait_state("reconnecting")
    watched.wait_state("reconnecting", reason="refused")
    delays = [said.retry_in_s for _, said in watched.states if said.state == "reconnecting"]
    assert all(0 < delay <= 0.3 for delay in delays)
    before, number = len(watched.states), watched.pictures[-1].index
    cam.start()
    watched.wait_state("live", after=before)
    watched.wait_pictures(5)
    assert watched.pictures[-1].generation >= 1
    assert watched.pictures[-1].index > number
    assert watched.source.counts["ended_refused"] >= 1


def test_frozen_camera_stalls_then_comes_back(camera, watch) -> None:
    cam = camera()
    watched = watch(cam.url)
    watched.wait_pictures(5)
    cam.freeze()
    watched.wait_state("stalled")
    watched.wait_state("reconnecting", reason="stalled")
    before = len(watched.states)
    cam.thaw()
    watched.wait_state("live", after=before)


def test_another_picture_size_begins_a_generation(camera, watch) -> None:
    cam = camera()
    watched = watch(cam.url)
    watched.wait_pictures(5)
    cam.resize(64, 48)
    watched.wait_for(lambda: (64, 48) in watched.sizes)
    at = watched.sizes.index((64, 48))
    assert [picture.generation for picture in watched.pictures[at - 1 : at + 1]] == [0, 1]
    assert watched.source.counts["connections"] == 1


def test_stop_while_waiting_for_the_next_try_is_immediate(camera, watch, config) -> None:
    cam = camera()
    slow = Backoff(first_s=100, cap_s=100, jitter=0)
    watched = watch(cam.url, config=replace(config, unavailable=slow))
    watched.wait_pictures(1)
    cam.kill()
    watched.wait_state("reconnecting")
    assert watched.end() < 1.0


def test_pictures_come_by_udp(camera, watch, config) -> None:
    watched = watch(camera().url, config=replace(config, transport="udp"))
    watched.wait_pictures(15)
    assert set(watched.sizes) == {(96, 96)}


def test_the_third_bad_connection_by_tcp_is_followed_by_one_by_udp(camera, watch, config) -> None:
    with GarblingProxy(camera().port) as proxy:
        hasty = replace(config, bad_window_s=0.4, first_frame_s=1.0)
        watched = watch(f"rtsp://127.0.0.1:{proxy.port}/cam", config=hasty)
        counts = watched.source.counts
        watched.wait_for(lambda: counts["switched"])
        watched.wait_pictures(15)
        assert counts["switched"] == 1
        assert counts["ended_decode_errors"] + counts["ended_no_key_frame"] == 3
