"""Which stream kills the process that runs it. Sans-I/O.

A process that dies takes all its streams with it, and nobody says whose fault it was. So:

- Each death is remembered for a while of every stream that was lost in it. A stream with one death
  fewer than the limit is a *suspect*.
- Without suspects everything is opened at once. While there is one, streams are opened one after
  the other, and each is watched for a while, its *probation*: a death meanwhile is charged to it
  alone. Who passes is trusted, and opened at once whatever happens to others.
- A death on probation that reaches the limit convicts. The deaths that a convict took part in are
  explained: they are struck off the record of everybody else.

So a conviction needs a death that only one stream can have caused. A stream that kills later than
its probation lasts gets a longer one next time, up to a bound.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from streamer.records import StreamRecord
from streamer.sessions.config import SupervisorConfig

__all__ = ["Suspicion"]

_INCIDENT_NS = 2_000_000_000
"""Sessions of one dead process end within this time; a new process takes longer to start."""
_OPENING_NS = 30_000_000_000
"""A session on probation that has not begun by then holds up the others no longer."""
_AGE_FACTOR = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Death:
    at_ns: int
    incident: int
    """Number of the death of a process."""
    age_ns: int
    """How long the session had held its lease."""


@dataclass(slots=True, kw_only=True)
class _Past:
    deaths: list[_Death] = field(default_factory=list)
    is_suspect: bool = False
    is_trusted_until_ns: int = 0


@dataclass(slots=True, kw_only=True)
class _Probation:
    stream: str
    opened_ns: int
    leased_ns: int | None = None


class Suspicion:
    """Remembers deaths, and says what may be opened. Lives as long as its supervisor."""

    def __init__(self, config: SupervisorConfig) -> None:
        self._config = config
        self._pasts: dict[str, _Past] = {}
        self._created_ns: dict[str, int] = {}
        self._leased_ns: dict[str, int] = {}
        self._opened_ns: dict[str, int] = {}
        self._probation: _Probation | None = None
        self._convicts: dict[str, int] = {}
        self._incident = 0
        self._members: set[str] = set()
        self._began_ns = -_INCIDENT_NS
        self._answered_ns = -_INCIDENT_NS

    @property
    def on_probation(self) -> str | None:
        """The one stream that answers for deaths now."""
        return self._probation.stream if self._probation else None

    def convicts(self, *, now_ns: int) -> tuple[str, ...]:
        """Streams to be quarantined; a conviction that nobody acts upon lapses."""
        window_ns = _ns(self._config.deaths_s)
        self._convicts = {s: at for s, at in self._convicts.items() if now_ns - at < window_ns}
        return tuple(self._convicts)

    def quarantined(self, stream: str) -> None:
        """Take note that a sentence was carried out. After its release the stream is a suspect."""
        self._convicts.pop(stream, None)

    def look(
        self,
        records: Iterable[StreamRecord],
        *,
        held: Collection[str],
        running: Collection[str],
        now_ns: int,
    ) -> None:
        """Take note of what is registered and what runs, before `admit`."""
        self._created_ns = {record.stream: record.created_ns for record in records}
        for stream in self._pasts.keys() - self._created_ns.keys():
            del self._pasts[stream]
        self._opened_ns = {stream: self._opened_ns.get(stream, now_ns) for stream in running}
        self._leased_ns = {
            stream: self._leased_ns.get(stream, now_ns)
            for stream in running
            if stream in held or stream in self._leased_ns
        }
        probation = self._probation
        if probation is None:
            return
        if probation.stream not in running:
            self._probation = None
            return
        probation.leased_ns = self._leased_ns.get(probation.stream)
        self._judge(probation, now_ns=now_ns)

    def _judge(self, probation: _Probation, *, now_ns: int) -> None:
        past = self._past(probation.stream)
        if probation.leased_ns is None:
            if now_ns - probation.opened_ns >= _OPENING_NS:
                self._probation = None
        elif now_ns - probation.leased_ns >= self._length_ns(past):
            self._probation = None
            past.deaths.clear()
            past.is_suspect = False
            past.is_trusted_until_ns = now_ns + _ns(self._config.deaths_s)

    def _length_ns(self, past: _Past) -> int:
        longest_ns = _ns(self._config.deaths_s / self._config.max_deaths)
        age_ns = past.deaths[-1].age_ns if past.deaths else 0
        return max(_ns(self._config.probation_s), min(round(age_ns * _AGE_FACTOR), longest_ns))

    def admit(
        self, due: Sequence[str], *, waiting: Collection[str] = (), now_ns: int
    ) -> tuple[str, ...]:
        """Which of the streams that are due may be opened now; the first one not trusted is put on
        probation with that, the youngest before the others: what was added last is suspected first.

        Args:
            waiting: streams that will be due soon.
        """
        if self._probation is None and not self._has_suspects(due, waiting):
            return tuple(due)
        trusted = [s for s in due if self._past(s).is_trusted_until_ns > now_ns]
        others = [s for s in due if s not in trusted]
        if self._probation is None:
            trusted += self._begin_probation(others, now_ns=now_ns)
        return tuple(trusted)

    def _begin_probation(self, due: Sequence[str], *, now_ns: int) -> list[str]:
        """What to open for it. A death must be one stream's alone: who was opened before anybody
        was suspected, and has not shown yet that it lives, goes first."""
        unproven = [s for s in self._opened_ns if not self._has_proven(s, now_ns=now_ns)]
        if len(unproven) == 1:
            self._probation = _Probation(stream=unproven[0], opened_ns=now_ns)
        if unproven or not due:
            return []
        stream = max(due, key=lambda each: self._created_ns.get(each, 0))
        self._probation = _Probation(stream=stream, opened_ns=now_ns)
        self._opened_ns[stream] = now_ns
        return [stream]

    def _has_proven(self, stream: str, *, now_ns: int) -> bool:
        """That it does no harm, by now or so far as anybody will wait."""
        past, leased_ns = self._past(stream), self._leased_ns.get(stream)
        if leased_ns is None:
            is_proven = now_ns - self._opened_ns[stream] >= _OPENING_NS
        else:
            is_proven = now_ns - leased_ns >= self._length_ns(past)
        return is_proven or past.is_trusted_until_ns > now_ns

    def _has_suspects(self, *groups: Collection[str]) -> bool:
        return any(self._past(stream).is_suspect for group in groups for stream in group)

    def died(self, stream: str, *, now_ns: int) -> None:
        """Take note that the process of this stream's session died."""
        age_ns = now_ns - self._leased_ns.get(stream, now_ns)
        probation, past = self._probation, self._past(stream)
        if probation is None:
            if now_ns - self._answered_ns >= _INCIDENT_NS:
                self._charge(stream, past, age_ns=age_ns, now_ns=now_ns)
        elif probation.stream == stream:
            self._probation = None
            self._answered_ns = now_ns
            self._charge(stream, past, age_ns=age_ns, now_ns=now_ns)
            if len(past.deaths) >= self._config.max_deaths:
                self._convict(stream, past, now_ns=now_ns)

    def _charge(self, stream: str, past: _Past, *, age_ns: int, now_ns: int) -> None:
        if now_ns - self._began_ns >= _INCIDENT_NS or stream in self._members:
            self._incident += 1
            self._began_ns = now_ns
            self._members.clear()
        self._members.add(stream)
        if not past.is_suspect:  # of a suspect they count until its probation is over
            oldest_ns = now_ns - _ns(self._config.deaths_s)
            past.deaths = [death for death in past.deaths if death.at_ns > oldest_ns]
        past.deaths.append(_Death(at_ns=now_ns, incident=self._incident, age_ns=age_ns))
        del past.deaths[: -self._config.max_deaths]
        past.is_suspect = self._is_suspicious(past)

    def _is_suspicious(self, past: _Past) -> bool:
        return len(past.deaths) >= self._config.max_deaths - 1

    def _convict(self, stream: str, past: _Past, *, now_ns: int) -> None:
        self._convicts[stream] = now_ns
        explained = {death.incident for death in past.deaths}
        past.deaths.pop()
        past.is_suspect = True
        for other in self._pasts.values():
            if other is past:
                continue
            other.deaths = [death for death in other.deaths if death.incident not in explained]
            other.is_suspect = other.is_suspect and self._is_suspicious(other)

    def _past(self, stream: str) -> _Past:
        return self._pasts.setdefault(stream, _Past())


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
