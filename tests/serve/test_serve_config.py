"""Settings of Serve whose defaults are traps; `deployments/config.py` explains the numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ray import serve
from ray.serve.config import HTTPOptions
from ray.serve.schema import ServeDeploySchema

from deployments.app import edge, pipeline
from deployments.config import (
    edge_options,
    encoder_options,
    fused_options,
    ingest_options,
    rollout_options,
    supervisor_options,
)
from streamer.errors import ConfigError
from streamer.gateway.config import GatewayConfig
from streamer.layout import LayoutConfig

pytestmark = pytest.mark.serve

LAYOUT = LayoutConfig()
SPLIT = LayoutConfig(placement="split", encoder_replicas=3, rollout_replicas=2, encoder_gpus=0.5)
ALL = {
    "encoder": encoder_options(LAYOUT),
    "rollout": rollout_options(LAYOUT),
    "fused": fused_options(LAYOUT),
    "ingest": ingest_options(LAYOUT),
    "supervisor": supervisor_options(),
    "edge": edge_options(LAYOUT, max_subscribers=GatewayConfig().max_subscribers),
}


@pytest.mark.parametrize("name", ALL)
def test_crashes_are_seen_soon_and_stopping_does_not_wait(name: str) -> None:
    options = ALL[name]
    assert options["health_check_period_s"] == 1
    assert options["graceful_shutdown_wait_loop_s"] == 0.1
    assert options["graceful_shutdown_timeout_s"] <= 10
    assert options["max_constructor_retry_count"] <= 3
    assert options["ray_actor_options"]["num_cpus"] <= 0.5
    serve.deployment(name=name, **options)  # Serve knows every one of them


def test_all_fit_on_the_smallest_machine() -> None:
    assert sum(options["ray_actor_options"]["num_cpus"] for options in ALL.values()) < 2


def test_the_edge_takes_more_sockets_than_the_gateway_admits() -> None:
    """So that one too many gets a sentence and a close code from the gateway, not a hanging
    handshake from Serve."""
    config = GatewayConfig()
    options = edge_options(LAYOUT, max_subscribers=config.max_subscribers)
    assert options["max_ongoing_requests"] > config.max_subscribers + 500
    assert "autoscaling_config" not in options, "sockets would count as load"


def test_no_time_limit_cuts_sockets() -> None:
    """`serving` gives the proxy an address and nothing else; this must stay Serve's default."""
    assert HTTPOptions().request_timeout_s is None


def test_a_stream_is_a_request() -> None:
    options = ingest_options(LayoutConfig(streams_per_replica=6, ingest_replicas=3))
    assert options["max_ongoing_requests"] == 6
    scaling = options["autoscaling_config"]
    assert scaling.target_ongoing_requests == 4.5
    assert (scaling.min_replicas, scaling.max_replicas) == (1, 3)


def test_pools_have_their_sizes() -> None:
    assert encoder_options(SPLIT)["num_replicas"] == 3
    assert encoder_options(SPLIT)["ray_actor_options"]["num_gpus"] == 0.5
    assert rollout_options(SPLIT)["num_replicas"] == 2
    assert fused_options(LAYOUT)["num_replicas"] == 1


def test_the_encoder_pool_follows_the_load_when_it_may() -> None:
    assert "autoscaling_config" not in encoder_options(SPLIT)
    options = encoder_options(replace(SPLIT, encoder_max_replicas=5))
    scaling = options["autoscaling_config"]
    assert "num_replicas" not in options
    assert (scaling.min_replicas, scaling.max_replicas) == (3, 5)
    assert scaling.target_ongoing_requests < options["max_ongoing_requests"]
    serve.deployment(name="encoder", **options)


def test_calls_that_wait_are_bounded_where_models_are() -> None:
    for name in ("encoder", "rollout", "fused"):
        assert 1 <= ALL[name]["max_queued_requests"] <= 1000
        assert ALL[name]["max_ongoing_requests"] > 8, "or batches never fill"


def graph(app: serve.Application) -> set[str]:
    names, open_nodes = set(), [app]
    while open_nodes:
        bound: Any = open_nodes.pop()._bound_deployment
        names.add(bound.name)
        open_nodes += [arg for arg in bound.init_args if isinstance(arg, serve.Application)]
    return names


def test_the_graphs_hold_what_their_placement_says() -> None:
    assert graph(pipeline({})) == {"Supervisor", "Ingest", "Fused"}
    split = pipeline({"ray": {"placement": "split"}})
    assert graph(split) == {"Supervisor", "Ingest", "Encoder", "Rollout"}
    assert graph(edge({})) == {"Gateway"}


def test_options_from_a_serve_config_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"ray\.placement"):
        pipeline({"ray": {"placment": "split"}})


def test_a_serve_config_may_name_the_builders() -> None:
    applications = [
        {"name": "pipeline", "route_prefix": None, "import_path": "deployments.app:pipeline"},
        {"name": "edge", "route_prefix": "/", "import_path": "deployments.app:edge"},
    ]
    config = ServeDeploySchema.model_validate({"applications": applications})
    assert [app.name for app in config.applications] == ["pipeline", "edge"]
