"""All checks, in the order in which one would look."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from streamer.doctor.finding import Finding, failed, ok
from streamer.doctor.horizons import check_horizons
from streamer.doctor.machine import (
    check_clock,
    check_disk,
    check_port,
    check_shared_memory,
    check_threads,
    usable_cores,
)
from streamer.doctor.service import (
    check_access,
    check_model,
    check_store_answers,
    running_version,
)
from streamer.doctor.software import check_ffmpeg, check_python, check_ray, check_torch
from streamer.errors import ConfigError
from streamer.settings import Settings, TracedSettings, trace_settings

__all__ = ["examine"]


def examine(
    *,
    config: Path | None = None,
    options: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Iterator[Finding]:
    """One finding after the other; takes seconds in all.

    Settings that cannot work are a finding, too. What does not depend on them is looked at with
    the defaults then, and the rest not at all.

    Args:
        config, options, environ: as for `load_settings`.
    """
    yield check_python()
    traced, finding = _settings(config=config, options=options, environ=environ)
    yield finding
    known = traced.settings if traced else Settings()
    yield check_torch(known)
    yield check_threads(known, threads=_torch_threads(), cores=usable_cores())
    yield check_ffmpeg()
    yield check_ray(known)
    yield check_clock()
    yield check_disk()
    yield check_shared_memory(known)
    if traced is not None:
        yield check_port(known, ask=running_version)
        yield check_access(known)
        yield check_store_answers(known)
        if (horizons := check_horizons(traced)) is not None:
            yield horizons
        yield check_model(known)


def _settings(
    *,
    config: Path | None,
    options: Mapping[str, Any] | None,
    environ: Mapping[str, str] | None,
) -> tuple[TracedSettings | None, Finding]:
    try:
        traced = trace_settings(config=config, options=options, environ=environ)
    except ConfigError as error:
        fix = "Correct it; `streamer config schema` tells what can be said."
        return None, failed("config", error, fix=fix)
    changed = len(traced.origins)
    place = f"{traced.file}, " if traced.file else ""
    return traced, ok("config", f"{place}values set: {changed}, the rest by default")


def _torch_threads() -> int | None:
    try:
        import torch
    except (ImportError, OSError):
        return None
    return torch.get_num_threads()
