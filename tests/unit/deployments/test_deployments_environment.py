"""What is set before ray is imported, and that it wins over what was there."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from deployments.environment import GUARDS, LOOPBACK, prepare

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*GUARDS, *LOOPBACK, "PYTHONPATH"):
        monkeypatch.setenv(name, "1")


def test_by_value_calls_stay_off_whatever_the_user_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_SERVE_THROUGHPUT_OPTIMIZED", "1")
    prepare(on_loopback=False)
    assert os.environ["RAY_SERVE_USE_GRPC_BY_DEFAULT"] == "0"
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


def test_calls_are_not_noted_for_a_dashboard_that_is_not_there() -> None:
    prepare(on_loopback=False)
    assert os.environ["RAY_task_events_report_interval_ms"] == "0"  # noqa: SIM112


def test_a_ray_of_our_own_stays_on_loopback() -> None:
    prepare(on_loopback=True)
    assert os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] == "0"
    assert os.environ["RAY_SERVE_ENABLE_HA_PROXY"] == "0"


def test_a_cluster_of_others_keeps_its_network() -> None:
    prepare(on_loopback=False)
    assert os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] == "1"
    assert os.environ["RAY_SERVE_ENABLE_HA_PROXY"] == "1"


def test_neither_environment_nor_launch_imports_ray() -> None:
    """They must run before it is imported; and nothing here may cost a torch."""
    code = "import deployments.launch, sys; print({'ray', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
