"""Waiting for replicas ends: with what failed, or with what found no room."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from ray import serve

from deployments.cluster import own_ray
from deployments.rollcall import check_room, wait_running
from streamer.errors import CapacityError, ConfigError
from streamer.layout import LayoutConfig

pytestmark = pytest.mark.serve

QUICK: dict[str, Any] = {"graceful_shutdown_timeout_s": 0, "max_constructor_retry_count": 1}


class Works:
    pass


class Breaks:
    def __init__(self) -> None:
        raise ValueError("the weights are broken")


@pytest.fixture
def name(cluster: str) -> Iterator[str]:
    """Of an application that is deleted after the test."""
    name = f"roll-{uuid4().hex[:6]}"
    yield name
    serve.delete(name)


def start(replica: type, name: str, *, cpus: float = 0.1) -> None:
    deployment = serve.deployment(name="It", ray_actor_options={"num_cpus": cpus}, **QUICK)
    target = serve.RunTarget(deployment(replica).bind(), name=name, route_prefix=None)
    serve.run_many([target], wait_for_applications_running=False)


def test_it_returns_when_they_run(name: str) -> None:
    start(Works, name)
    wait_running([name], timeout_s=30)


def test_a_broken_replica_is_told(name: str) -> None:
    start(Breaks, name)
    with pytest.raises(ConfigError, match="the weights are broken"):
        wait_running([name], timeout_s=30)


def test_a_replica_without_room_is_not_waited_for_for_ever(name: str) -> None:
    start(Works, name, cpus=4000)
    with pytest.raises(CapacityError, match=r"within 1 s.*ray\.ready_s"):
        wait_running([name], timeout_s=1)


@pytest.mark.parametrize(
    "layout",
    [
        LayoutConfig(encoder_gpus=1),
        LayoutConfig(placement="split", rollout_gpus=0.5),
        LayoutConfig(placement="split", encoder_replicas=30),
    ],
    ids=str,
)
def test_what_never_fits_is_refused_at_once(layout: LayoutConfig) -> None:
    with pytest.raises(ConfigError, match="ask Ray for"):
        check_room(layout, total={"CPU": 8.0})


def test_what_fits_is_not_refused() -> None:
    check_room(LayoutConfig(), total={"CPU": 8.0})
    split = LayoutConfig(placement="split", encoder_replicas=4, encoder_gpus=0.25)
    check_room(split, total={"CPU": 8.0, "GPU": 1.0})


def test_an_object_store_larger_than_the_machine_is_told_in_our_words() -> None:
    layout = LayoutConfig(object_store_mb=10**9)
    with pytest.raises(ConfigError, match=r"ray\.object_store_mb is 1000000000"), own_ray(layout):
        raise AssertionError("it cannot start")
