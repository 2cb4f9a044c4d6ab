"""Which sessions the supervisor opens and which it wants no longer. Sans-I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from streamer.backoff import Backoff, delays
from streamer.records import StreamRecord
from streamer.sessions.ending import Ending

__all__ = ["Decision", "Retries", "Turns", "decide", "wanted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do now."""

    to_open: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()
    """Sessions of streams that are to run no longer. They see it themselves; who does not is
    cancelled after a grace time."""
    left_out: tuple[str, ...] = ()
    """Streams that should run but for which there is no room."""
    kept_back: tuple[str, ...] = ()
    """Streams that wait because one that kills its process is being looked for."""


def wanted(record: StreamRecord) -> bool:
    """Whether this stream should have a session."""
    return record.desired == "live" and not record.outcome


def decide(
    records: Iterable[StreamRecord],
    *,
    held: Collection[str],
    running: Collection[str],
    waiting: Collection[str],
    max_sessions: int,
) -> Decision:
    """Compare what is wanted with what is there.

    Args:
        records: all registered streams.
        held: streams with a fresh lease, ours or anybody's: they are being served.
        running: sessions this supervisor has opened and that have not ended.
        waiting: streams whose last session broke so recently that it is not their turn yet.
        max_sessions: most sessions of this supervisor.
    """
    live = {record.stream: None for record in records if wanted(record)}
    free = max(0, max_sessions - len(running))
    due = [s for s in live if s not in held and s not in running and s not in waiting]
    return Decision(
        to_open=tuple(due[:free]),
        unwanted=tuple(stream for stream in running if stream not in live),
        left_out=tuple(due[free:]),
    )


@dataclass(slots=True, kw_only=True)
class Turns:
    """Leaves streams beyond a fair share to other services for a moment, so that they spread."""

    courtesy_s: float
    """How long; then whoever has room takes them."""
    _since_ns: dict[str, int] = field(default_factory=dict)

    def take(self, due: Sequence[str], *, running: int, share: int, now_ns: int) -> tuple[str, ...]:
        """Which of the streams that may be opened are ours to open now.

        Args:
            running: sessions of this supervisor.
            share: streams that each supervisor would have, if all had as many.
        """
        self._since_ns = {stream: self._since_ns.get(stream, now_ns) for stream in due}
        oldest_ns = now_ns - int(self.courtesy_s * 1e9)
        ours = max(0, share - running)
        left = (stream for stream in due[ours:] if self._since_ns[stream] <= oldest_ns)
        return (*due[:ours], *left)


@dataclass(slots=True, kw_only=True)
class _Retry:
    delays: Iterator[float]
    not_before_ns: int = 0


@dataclass(slots=True, kw_only=True)
class Retries:
    """Remembers which streams broke, and until when they wait."""

    backoff: Backoff
    healthy_s: float
    _streams: dict[str, _Retry] = field(default_factory=dict)

    def waiting(self, *, now_ns: int) -> set[str]:
        """Streams whose turn has not come yet."""
        return {s for s, retry in self._streams.items() if now_ns < retry.not_before_ns}

    def keep(self, streams: Collection[str]) -> None:
        """Forget all other streams: they are registered no longer."""
        for stream in self._streams.keys() - set(streams):
            del self._streams[stream]

    def interrupted(self, stream: str, *, now_ns: int) -> None:
        """It ended for no reason of its own, because somebody else was faster, or its process died:
        the pause is short and does not grow."""
        self._streams.pop(stream, None)
        self.ended(stream, None, ran_s=0.0, now_ns=now_ns)

    def ended(self, stream: str, ending: Ending | None, *, ran_s: float, now_ns: int) -> None:
        """Take note of the end of a session.

        Args:
            ending: None when it broke.
            ran_s: how long it ran, seconds.
        """
        if ending is not None or ran_s >= self.healthy_s:
            self._streams.pop(stream, None)
        if ending is None:
            retry = self._streams.setdefault(stream, _Retry(delays=delays(self.backoff)))
            wait_s = next(retry.delays, self.backoff.cap_s)
            retry.not_before_ns = now_ns + int(wait_s * 1e9)
