"""An RTSP camera that is read for ever: reconnects by itself and says how it is.

One thread opens, reads and decodes; nothing queues: the sink takes each picture at once. States
(`SourceState`) and what they mean here:

- ``starting``: the first connection is being made.
- ``live``: a picture came. ``stalled``: none for `RtspConfig.stall_s`; the reader still waits.
- ``reconnecting``: the connection ended (`reason`), the next try is in `retry_in_s`.
- ``failed``: as before, but somebody has to change something; with `retry_in_s` None it is over.

A stop request is answered within 0.1 s while pictures come and during waits between tries, within
`open_timeout_s` or `read_timeout_s` while FFmpeg is blocked (only its timeouts can interrupt it),
or when the system's resolver has answered.
"""

from __future__ import annotations

import logging
import random
import threading
from collections import Counter
from collections.abc import Iterator

from streamer.backoff import Backoff, delays
from streamer.clock import monotonic_ns
from streamer.errors import SourceUnavailable
from streamer.records import ClockReading, SourceState
from streamer.sources.policy import SourcePolicy
from streamer.sources.redact import redact
from streamer.sources.rtsp_config import RtspConfig
from streamer.sources.rtsp_connection import connected, packets
from streamer.sources.rtsp_failures import ConnectionEnded, Failure, failure
from streamer.sources.rtsp_pictures import Pictures
from streamer.sources.rtsp_states import LiveStates
from streamer.sources.rtsp_transport import Transport
from streamer.sources.source import Report, Sink

__all__ = ["RtspSource"]

_log = logging.getLogger(__name__)


class RtspSource:
    """A camera at an ``rtsp:`` or ``rtsps:`` URL (a `Source`).

    Args:
        url: with percent-encoded credentials, if it needs some.
        policy: who may be contacted; asked again before each connection.
        config: times and limits.
        rng: source of the jitter between tries.
    """

    live = True

    def __init__(
        self,
        url: str,
        *,
        policy: SourcePolicy,
        config: RtspConfig | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.name = redact(url)
        self.counts: Counter[str] = Counter()
        """Since the start: `pictures`, `corrupt`, `undecodable`, `connections`,
        `switched` (between TCP and UDP), and `ended_<reason>` per ended connection. Written by the
        decode thread."""
        self.reading: ClockReading | None = None
        self._url = url
        self._policy = policy
        self._config = config or RtspConfig()
        self._rng = rng or random.Random()
        self._tries: dict[str, Iterator[float]] = {}
        self._transport = Transport(
            self._config.transport,
            is_secure=url.lower().startswith("rtsps:"),
            switch_after=self._config.switch_after,
        )

    def run(self, *, sink: Sink, report: Report, stop: threading.Event) -> None:
        """Read the camera until `stop` is set, see `Source.run`.

        `report` is called from this thread and from a watch thread, one at a time; neither it nor
        `sink` may block.

        Raises:
            ConfigError: the URL cannot work.
            SourceDenied: user or password were refused `RtspConfig.denied.max_tries` times.
            SourceForbidden: the policy refuses the address that the name has now.
        """
        pictures = Pictures(name=self.name, config=self._config, counts=self.counts)
        with LiveStates(report, stall_s=self._config.stall_s) as states:
            states.say(SourceState(state="starting", reason="opening"))
            while not stop.is_set():
                ended = self._connection(pictures, sink=sink, states=states, stop=stop)
                if ended is None:
                    return
                self._wait(ended, states=states, stop=stop)

    def _connection(
        self, pictures: Pictures, *, sink: Sink, states: LiveStates, stop: threading.Event
    ) -> Failure | None:
        """One connection from opening to its end; None when it ended because of `stop`."""
        started_ns = monotonic_ns()
        try:
            self._read(pictures, sink=sink, states=states, stop=stop)
        except ConnectionEnded as ended:
            if stop.is_set():
                return None
            if pictures.live_s >= self._config.settled_s:
                self._tries.clear()
                self._transport.settled()
            self._ended(ended.failure, lasted_s=(monotonic_ns() - started_ns) / 1e9)
            return ended.failure
        return None

    def _read(
        self, pictures: Pictures, *, sink: Sink, states: LiveStates, stop: threading.Event
    ) -> None:
        pictures.disconnected()
        self.reading = None
        try:
            self._policy.check(self._url)
        except SourceUnavailable:
            raise ConnectionEnded(failure("unknown_host", name=self.name)) from None
        with connected(
            self._url, name=self.name, config=self._config, transport=self._transport.name
        ) as stream:
            pictures.connected()
            for packet in packets(stream, name=self.name, config=self._config):
                if stop.is_set():
                    return
                for picture in pictures.of(packet):
                    self.reading = pictures.reading
                    states.picture(picture.arrived_ns)
                    sink(picture)

    def _wait(self, ended: Failure, *, states: LiveStates, stop: threading.Event) -> None:
        """Say what happened and wait for the next try.

        Raises:
            SourceError: no try is left.
        """
        delay_s = next(self._delays(ended), None)
        fails = ended.remedy != "unavailable"
        states.say(
            SourceState(
                state="failed" if fails else "reconnecting",
                reason=ended.reason,
                detail=ended.detail,
                retry_in_s=delay_s,
            )
        )
        if delay_s is None:
            raise ended.as_error()
        stop.wait(delay_s)

    def _delays(self, ended: Failure) -> Iterator[float]:
        if ended.remedy not in self._tries:
            backoff: Backoff = getattr(self._config, ended.remedy)
            self._tries[ended.remedy] = delays(backoff, rng=self._rng)
        return self._tries[ended.remedy]

    def _ended(self, ended: Failure, *, lasted_s: float) -> None:
        self.counts[f"ended_{ended.reason}"] += 1
        _log.info(
            "the connection to a camera ended",
            extra={"source": self.name, "reason": ended.reason, "lasted_s": round(lasted_s, 3)},
        )
        if self._transport.ended(ended.reason):
            self.counts["switched"] += 1
            _log.info(
                "a camera is tried by the other transport",
                extra={"source": self.name, "transport": self._transport.name},
            )
