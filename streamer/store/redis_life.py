"""What this process saw of the log, to notice that the server came back with less."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Life", "SeenLife"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """Where the whole log stood; see `streamer.store.redis_lua_life`."""

    epoch: str = ""
    began_ms: int = 0
    """When the epoch began, by the server's clock; grows with each epoch."""
    server: str = ""
    """Replication id of the server under which the newest append was made."""
    appends: int = 0
    """Of all streams together."""


class SeenLife:
    """The newest that any answer told."""

    def __init__(self) -> None:
        self.newest = Life()

    def saw(self, life: Life) -> None:
        """An answer; one that was overtaken on its way tells nothing."""
        known = self.newest
        if (life.began_ms, life.appends) >= (known.began_ms, known.appends):
            self.newest = life
