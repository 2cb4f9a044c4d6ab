"""One real Ray for all tests of this folder, as `streamer serve` starts it."""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from deployments.environment import prepare

# Before any test module imports ray. The second one turns every reference that is pickled out of
# band, which Ray would pin for ever, into an exception.
prepare(on_loopback=True)
os.environ["RAY_allow_out_of_band_object_ref_serialization"] = "0"  # noqa: SIM112
os.environ["RAY_metrics_report_interval_ms"] = "1000"  # noqa: SIM112

with warnings.catch_warnings():
    # Ray 2.60 uses what newer pydantic calls deprecated, once, when it is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    import ray.serve


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    """Ray and Serve on loopback; the base URL of the proxy."""
    from deployments.cluster import own_ray, serving
    from streamer.layout import LayoutConfig

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with own_ray(LayoutConfig(object_store_mb=256)), serving(host="127.0.0.1", port=port):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def run_app(cluster: str) -> Iterator[Callable[..., object]]:
    """``run_app(app, name="x")``: handle of an application that is deleted after the test."""
    with ExitStack() as stack:

        def run(app: ray.serve.Application, *, name: str) -> object:
            handle = ray.serve.run(app, name=name, route_prefix=None)
            stack.callback(ray.serve.delete, name)
            return handle

        yield run
