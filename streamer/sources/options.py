"""The query of a source URL, checked without opening anything."""

from __future__ import annotations

from urllib.parse import urlsplit

from streamer.sources.config import SyntheticConfig
from streamer.sources.query import parse_options, read_choice
from streamer.sources.synthetic import parse_synthetic

__all__ = ["check_options", "file_is_realtime"]


def check_options(url: str) -> None:
    """Refuse options that `open_source` would refuse, so that a client hears it at once.

    Args:
        url: one that a `SourcePolicy` let pass.

    Raises:
        ConfigError: unknown scene or option, or a value that cannot work.
    """
    scheme = url.partition(":")[0].lower()
    if scheme == "synthetic":
        parse_synthetic(url, config=SyntheticConfig())
    elif scheme == "file":
        file_is_realtime(url)


def file_is_realtime(url: str) -> bool:
    """``?pace=realtime``.

    Raises:
        ConfigError: another option, or another pace.
    """
    options = parse_options(urlsplit(url).query, known=("pace",))
    return read_choice(options, "pace", choices=("fast", "realtime")) == "realtime"
