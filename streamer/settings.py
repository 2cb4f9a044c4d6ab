"""How this process is started: one tree of settings from options, environment and one YAML file.

Options of the command line win over the environment (``STREAMER_SAMPLING__FPS=8``), that over the
file (``--config`` or ``STREAMER_CONFIG``), that over the defaults. Each section is the dataclass
that its part of the program takes, so a value has one definition and one check.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from streamer.clips.config import ClipConfig
from streamer.errors import ConfigError
from streamer.events.config import FeedConfig
from streamer.events.explained import explained
from streamer.frames.config import SamplerConfig
from streamer.gateway.config import GatewayConfig
from streamer.gateway.upload_config import UploadConfig
from streamer.layers import leaves, merge, read_environment, read_file
from streamer.layout import LayoutConfig
from streamer.records import RolloutMode, Sampling, StreamSpec
from streamer.serving.config import ServingConfig
from streamer.sessions.config import SessionConfig, SupervisorConfig
from streamer.sources.config import FileConfig, SourceConfig, SyntheticConfig
from streamer.sources.policy import SourcePolicy
from streamer.sources.rtsp_config import RtspConfig
from streamer.store.config import StoreConfig

__all__ = [
    "LogConfig",
    "ModelConfig",
    "Origin",
    "ServerConfig",
    "Settings",
    "TracedSettings",
    "load_settings",
    "trace_settings",
]

_SECRET = frozenset({"password", "url"})
"""Names of settings whose value is never shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Which model is served, and where it computes."""

    name: str = "tiny"
    """A preset (random weights), a folder or a Hugging Face id."""
    revision: str | None = None
    """Branch, tag or commit on the hub."""
    device: str = "auto"
    """`cpu`, `cuda`, `cuda:1`, ...; `auto` takes a GPU when there is one."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """What encoder and predictor compute in; `auto` is float32 on a CPU and bfloat16 on a GPU."""
    threads: int = 0
    """Threads of torch inside one operation; 0 leaves torch's own choice."""

    def __post_init__(self) -> None:
        if not self.name:
            raise ConfigError("model.name is empty; name a preset, a folder or a hub id.")
        if self.threads < 0:
            raise ConfigError(f"model.threads is {self.threads}; it must be 0 or more.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Where the service listens."""

    host: str = "127.0.0.1"
    """Address to bind. Beyond loopback it takes access tokens (`gateway.tokens_file`)."""
    port: int = 8000
    """TCP port; 0 takes a free one."""
    allow_anonymous: bool = False
    """Bind beyond loopback without access tokens, where something else keeps strangers out."""
    drain_s: float = 5.0
    """How long open feeds may take to say goodbye when the service stops, seconds."""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise ConfigError(f"server.port is {self.port}; it lies between 0 and 65535.")
        if not self.host:
            raise ConfigError("server.host is empty; 127.0.0.1 is this machine alone.")
        if self.drain_s < 0:
            raise ConfigError(f"server.drain_s is {self.drain_s}; it must be 0 or more.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """What is logged, and how."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least important level that is still written."""
    format: Literal["auto", "plain", "json"] = "auto"
    """`auto` is plain on a terminal and one JSON object per line elsewhere."""


class Settings(BaseModel):
    """The whole tree. Immutable; small sections are handed to whoever needs them."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    model: ModelConfig = ModelConfig()
    """The served model."""
    server: ServerConfig = ServerConfig()
    """Address and port."""
    sources: SourcePolicy = SourcePolicy()
    """Which cameras and files may be opened."""
    rtsp: RtspConfig = RtspConfig()
    """Patience with RTSP cameras."""
    files: FileConfig = FileConfig()
    """Limits of files."""
    synthetic: SyntheticConfig = SyntheticConfig()
    """Synthetic worlds."""
    sampling: Sampling = Sampling()
    """How pictures become clips, where a stream does not say."""
    mode: RolloutMode = "contiguous"
    """How futures are predicted, where a stream does not say."""
    horizons_s: tuple[float, ...] = (0.5, 1.0, 2.0)
    """How far ahead, seconds, where a stream does not say."""
    retain_s: float = 3600.0
    """How long events are kept, seconds, where a stream does not say."""
    feed: FeedConfig = FeedConfig()
    """Feed sessions."""
    gateway: GatewayConfig = GatewayConfig()
    """Limits of what clients may ask."""
    uploads: UploadConfig = UploadConfig()
    """Files that clients send to be worked on."""
    store: StoreConfig = StoreConfig()
    """Bounds of registry and event log."""
    session: SessionConfig = SessionConfig()
    """Running streams."""
    supervisor: SupervisorConfig = SupervisorConfig()
    """Opening and re-opening streams."""
    serving: ServingConfig = ServingConfig()
    """Batches, rollout and surprise."""
    ray: LayoutConfig = LayoutConfig()
    """Layout on a Ray cluster."""
    log: LogConfig = LogConfig()
    """Logging."""

    def stream_spec(self, source: str) -> StreamSpec:
        """A stream of this source with the defaults of these settings."""
        return StreamSpec(
            source=source,
            mode=self.mode,
            horizons_s=self.horizons_s,
            sampling=self.sampling,
            retain_s=self.retain_s,
        )

    def source_config(self) -> SourceConfig:
        """What `open_source` takes."""
        return SourceConfig(rtsp=self.rtsp, file=self.files, synthetic=self.synthetic)

    def serving_config(self, *, device: str) -> ServingConfig:
        """`serving` with dtype and threads of `model` put in where these were given.

        Args:
            device: what `model.device` came out as, like `cpu`.
        """
        dtype = self.model.dtype
        if dtype == "auto":
            dtype = "bfloat16" if device.startswith("cuda") else self.serving.encoder.dtype
        threads = self.model.threads or self.serving.device.threads
        return replace(
            self.serving,
            device=replace(self.serving.device, threads=threads),
            encoder=replace(self.serving.encoder, dtype=dtype),
            rollout=replace(self.serving.rollout, dtype=dtype),
        )


Origin = Literal["default", "file", "env", "option"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedSettings:
    """Settings, and where each value comes from."""

    settings: Settings
    origins: Mapping[str, Origin]
    """Name like `server.port` -> origin; what is not in it is a default."""
    file: Path | None
    """The settings file, if there is one."""


def load_settings(
    *,
    config: Path | None = None,
    options: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Put the layers together.

    Args:
        config: YAML file; None: what STREAMER_CONFIG names, if anything.
        options: values of the command line as a nested mapping; None values were not given.
        environ: environment; None: this process's.

    Raises:
        ConfigError: an unknown name, with the nearest valid one, or a value that cannot work.
    """
    return trace_settings(config=config, options=options, environ=environ).settings


def trace_settings(
    *,
    config: Path | None = None,
    options: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> TracedSettings:
    """The same, and which layer each value is of. Raises as `load_settings`."""
    environ = os.environ if environ is None else environ
    named = config or (Path(environ["STREAMER_CONFIG"]) if environ.get("STREAMER_CONFIG") else None)
    tree = Settings().model_dump()
    layers: tuple[tuple[Origin, dict[str, Any], str], ...] = (
        ("file", read_file(named) if named else {}, str(named)),
        ("env", read_environment(environ, defaults=tree), "the environment"),
        ("option", _given(options or {}), "the command line"),
    )
    origins: dict[str, Origin] = {}
    for origin, layer, place in layers:
        tree = merge(tree, layer, origin=place)
        origins |= dict.fromkeys(leaves(layer), origin)
    try:
        settings = Settings.model_validate(tree)
    except ValidationError as error:
        raise ConfigError(_sentence(error)) from error
    _check_stream(settings)
    _check_pictures(settings)
    return TracedSettings(settings=settings, origins=origins, file=named)


def _check_stream(settings: Settings) -> None:
    """What a stream gets where it does not say, as far as no model is needed to judge it."""
    sampling = settings.sampling
    SamplerConfig(fps=sampling.fps)
    # Which strides fit is known with the model's tubelet only; here one that fits everywhere.
    ClipConfig(frames=sampling.frames, fps=sampling.fps, stride_s=1 / sampling.fps, tubelet=1)
    if not (math.isfinite(sampling.stride_s) and sampling.stride_s > 0):
        raise ConfigError(f"stride_s is {sampling.stride_s}; it must be above 0.")
    if not settings.horizons_s:
        raise ConfigError("horizons_s is empty; name at least one, like 0.5,1,2.")
    for each in settings.horizons_s:
        if not (math.isfinite(each) and each > 0):
            raise ConfigError(f"horizons_s holds {each}; a horizon must be above 0.")
    if not (math.isfinite(settings.retain_s) and settings.retain_s > 0):
        raise ConfigError(f"retain_s is {settings.retain_s}; it must be above 0.")


def _check_pictures(settings: Settings) -> None:
    largest = settings.store.max_picture_bytes
    for name, value in (
        ("session.snapshot_bytes", settings.session.snapshot_bytes),
        ("serving.pictures.max_bytes", settings.serving.pictures.max_bytes),
    ):
        if value > largest:
            raise ConfigError(
                f"{name} is {value}, but the store takes {largest} (store.max_picture_bytes)."
            )


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name, value in options.items():
        if isinstance(value, Mapping):
            value = _given(value)
        if value is not None and value != {}:
            given[name] = value
    return given


def _sentence(error: ValidationError) -> str:
    facts = [
        f"{'.'.join(str(part) for part in each['loc'])}: {_words(each)}{_not(each)}"
        for each in error.errors(include_url=False)
    ]
    return "Settings cannot work. " + "; ".join(facts) + "."


def _words(error: ErrorDetails) -> str:
    return explained(error["type"], error["msg"], error.get("ctx"))


def _not(error: ErrorDetails) -> str:
    is_secret = not _SECRET.isdisjoint(error["loc"])
    return "" if is_secret else f", not {error['input']!r}"
