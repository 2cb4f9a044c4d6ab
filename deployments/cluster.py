"""Ray and Serve: joined or started, and left behind as they were found.

Import only after `deployments.environment.prepare`.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import ray
from ray import serve
from ray.serve.config import HTTPOptions, ProxyLocation

from deployments.config import EDGE_APP, PIPELINE_APP
from deployments.scratch import scratch_folder
from deployments.store import stop_store
from streamer.errors import ConfigError
from streamer.layout import LayoutConfig

__all__ = ["joined_ray", "own_ray", "serving"]

# Logical: the graph's fractions fit whatever the machine has.
_MIN_CPUS = 8


@contextmanager
def own_ray(layout: LayoutConfig, *, num_gpus: int | None = None) -> Iterator[str]:
    """Start a Ray on this machine, for this process alone; yields its folder of logs.

    Raises:
        ConfigError: this process is connected to a Ray already, or Ray cannot start here.
    """
    _must_fit(layout.object_store_mb)
    _must_be_disconnected()
    with scratch_folder() as folder:
        try:
            ray.init(
                address="local",  # never a stray cluster of somebody else
                num_cpus=max(_MIN_CPUS, os.cpu_count() or 1),
                num_gpus=num_gpus,
                object_store_memory=layout.object_store_mb * 2**20,
                include_dashboard=False,  # 10 processes and 1 GB
                log_to_driver=False,
                logging_level=logging.ERROR,
                _temp_dir=folder,
                _node_ip_address="127.0.0.1",
            )
        except (RuntimeError, ConnectionError, ValueError, OSError) as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise ConfigError(
                f"Ray cannot start here: {error} Try `streamer serve --runtime local`,"
                " which needs no Ray."
            ) from error
        try:
            yield os.path.join(folder, "session_latest", "logs")
        finally:
            with _quiet():
                ray.shutdown()


@contextmanager
def joined_ray(address: str) -> Iterator[str]:
    """Connect to a running Ray (see `address.find_cluster`); says where its logs are.

    Raises:
        ConfigError: this process is connected already, or versions differ.
    """
    _must_be_disconnected()
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (RuntimeError, ConnectionError, ValueError, OSError) as error:
        raise ConfigError(
            f"The Ray at {address!r} cannot be joined: {error}. A Ray with access tokens (from 2.60"
            " on every one that `ray start` began) also wants RAY_AUTH_MODE=token here; `auto`"
            " finds that out by itself. Or leave ray.address and RAY_ADDRESS empty to start a Ray"
            " here."
        ) from error
    try:
        yield "where the cluster keeps them"
    finally:
        with _quiet():
            ray.shutdown()


def _must_fit(object_store_mb: int) -> None:
    there_mb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20
    if object_store_mb > there_mb // 2:
        raise ConfigError(
            f"ray.object_store_mb is {object_store_mb}, and this machine has {there_mb} MB of"
            " memory, half of which replicas and the rest need. Choose a lower one."
        )


def _must_be_disconnected() -> None:
    if ray.is_initialized():
        raise ConfigError(
            "This process is connected to a Ray cluster already; the service wants to start or"
            " join its own. Call ray.shutdown() first."
        )


@contextmanager
def serving(*, host: str, port: int) -> Iterator[None]:
    """Serve with an HTTP proxy at that address; our applications and store are gone afterwards.

    A Serve that ran before keeps running, with its other applications and at its own address.

    Raises:
        ConfigError: the cluster serves streams already.
    """
    # What Serve tells its developers; people get our own lines.
    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    before = set(serve.status().applications) if _has_controller() else None
    if before is not None and before & {PIPELINE_APP, EDGE_APP}:
        raise ConfigError(
            f"This Ray cluster already runs the applications {PIPELINE_APP!r} and {EDGE_APP!r}."
            " Use them, remove them with `serve shutdown`, or choose another cluster."
        )
    serve.start(
        proxy_location=ProxyLocation.EveryNode,
        # No request_timeout_s: it would cut every socket after that time, without a close frame.
        http_options=HTTPOptions(host=host, port=port),
    )
    try:
        yield
    finally:
        if before is None:
            with _quiet():
                serve.shutdown()  # type: ignore[no-untyped-call]  # Ray has no annotation here
        else:
            serve.delete(EDGE_APP)
            serve.delete(PIPELINE_APP)
        stop_store()


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep to ourselves that tasks of the controller fail when the controller is stopped.

    Ray prints that from a thread, past every logger and whatever `log_to_driver` says.
    """
    with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere), redirect_stdout(nowhere):
        yield


def _has_controller() -> bool:
    names = ray.util.list_named_actors(all_namespaces=True)
    return any(actor["name"] == "SERVE_CONTROLLER_ACTOR" for actor in names)
