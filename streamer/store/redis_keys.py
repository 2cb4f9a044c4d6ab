"""Names of keys and channels; `streamer.store.redis_scripts` says what is in them."""

from __future__ import annotations

__all__ = ["RedisKeys"]


class RedisKeys:
    """All names under one prefix."""

    def __init__(self, prefix: str) -> None:
        self.begin = f"{prefix}:"
        self.registry = f"{prefix}:registry"
        self.wanted = f"{prefix}:wanted"
        self.ids = f"{prefix}:ids"
        self.changes = f"{prefix}:changes"
        self.life = [f"{prefix}:life", f"{prefix}:lives"]
        self.deleted = f"{prefix}:deleted"
        self.forgotten = f"{prefix}:forgotten"

    def lease(self, stream: str) -> str:
        return f"{self.begin}{{{stream}}}:lease"

    def status(self, stream: str) -> str:
        return f"{self.begin}{{{stream}}}:status"

    def pictures(self, stream: str, kind: str) -> list[str]:
        """Index and bodies."""
        return [f"{self.begin}{{{stream}}}:{kind}:index", f"{self.begin}{{{stream}}}:{kind}:bodies"]

    def head(self, stream: str) -> str:
        return f"{self.begin}{{{stream}}}:head"

    def events(self, stream: str) -> str:
        return f"{self.begin}{{{stream}}}:events"

    def presence(self, kind: str) -> list[str]:
        """Announcements, and when each of them ends."""
        return [f"{self.begin}presence:{kind}", f"{self.begin}presence:{kind}:ends"]
