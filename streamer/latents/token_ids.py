"""Token ids as people write them."""

from __future__ import annotations

from streamer.errors import ConfigError

__all__ = ["parse_ids"]

_MAX_IDS = 1_000_000


def parse_ids(text: str, *, option: str) -> list[int]:
    """``0-100,200`` -> 0, 1, ..., 100, 200; ranges include both ends.

    Args:
        option: where it stands, for the sentence.

    Raises:
        ConfigError: not such a list.
    """
    ids: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not _is_number(first) or (dash and not _is_number(last)):
            shown = part.strip()[:40]
            raise ConfigError(f"{option} holds {shown!r}; write ids such as 0-100,200.")
        low, high = int(first), int(last) if dash else int(first)
        if high < low or high - low + len(ids) >= _MAX_IDS:
            shown = part.strip()[:40]
            raise ConfigError(f"{option} holds {shown!r}, which runs backwards or too far.")
        ids += range(low, high + 1)
    return ids


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 12
