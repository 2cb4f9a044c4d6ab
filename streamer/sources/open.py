"""URL -> source: the one table of schemes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

from streamer.errors import ConfigError
from streamer.sources.config import SourceConfig
from streamer.sources.file import FileSource
from streamer.sources.options import file_is_realtime
from streamer.sources.policy import SourcePolicy
from streamer.sources.redact import redact
from streamer.sources.source import Source
from streamer.sources.synthetic import SyntheticSource, parse_synthetic

__all__ = ["SCHEMES", "file_url", "open_source"]

_WORKS = "rtsp://host/path, file:///path/clip.mp4 or synthetic:bounce"

Opener = Callable[[str, SourcePolicy, SourceConfig], Source]


def open_source(url: str, *, policy: SourcePolicy, config: SourceConfig | None = None) -> Source:
    """The source that a URL names, not started yet. May block on a name look-up.

    Args:
        url: ``rtsp(s)://...``, ``file:///path?pace=realtime`` or
            ``synthetic:scene?seed=1&fps=15&size=96`` (see `parse_synthetic`).
        policy: who may be contacted; asked before anything is opened.

    Raises:
        ConfigError: no known scheme, unknown options, values that cannot work.
        SourceForbidden: the policy refuses it.
        SourceUnavailable: the host does not resolve, or there is no such file.
    """
    scheme = url.partition(":")[0].lower() if ":" in url else ""
    opener = SCHEMES.get(scheme)
    if opener is None:
        what = f"a source with scheme {scheme!r}" if scheme else "a source without a scheme"
        raise ConfigError(f"{redact(url)!r} is {what}, which cannot be opened; write {_WORKS}.")
    policy.check(url)
    return opener(url, policy, config or SourceConfig())


def file_url(path: Path) -> str:
    """``file:`` URL of a path (made absolute), with special characters encoded."""
    return "file://" + quote(str(path.absolute()))


def _open_rtsp(url: str, policy: SourcePolicy, config: SourceConfig) -> Source:
    from streamer.sources.rtsp import RtspSource

    return RtspSource(url, policy=policy, config=config.rtsp)


def _open_file(url: str, policy: SourcePolicy, config: SourceConfig) -> Source:
    return FileSource(
        policy.file_path(url),
        name=redact(url),
        is_realtime=file_is_realtime(url),
        config=config.file,
    )


def _open_synthetic(url: str, policy: SourcePolicy, config: SourceConfig) -> Source:
    return SyntheticSource(parse_synthetic(url, config=config.synthetic), name=redact(url))


SCHEMES: Mapping[str, Opener] = MappingProxyType(
    {"rtsp": _open_rtsp, "rtsps": _open_rtsp, "file": _open_file, "synthetic": _open_synthetic}
)
