"""Packets of one camera, connection after connection -> pictures with capture times."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator

from av.video.frame import VideoFrame

from streamer.clock import both_ns, monotonic_ns
from streamer.records import ClockReading, Picture
from streamer.sources.capture_clock import CaptureTimes, producer_wall_ns
from streamer.sources.rtsp_config import RtspConfig
from streamer.sources.rtsp_connection import VideoPacket, decoded
from streamer.sources.rtsp_failures import ConnectionEnded, failure

__all__ = ["Pictures"]

_FEWEST_JUDGED = 5


class Pictures:
    """Decodes, numbers and stamps. Broken pictures are counted, not passed on.

    The generation goes up with each connection, and within one when the picture size changes. The
    number of a picture goes on over all of them and counts broken ones too.
    """

    def __init__(self, *, name: str, config: RtspConfig, counts: Counter[str]) -> None:
        self._name = name
        self._config = config
        self._counts = counts
        self._generation = -1
        self._index = 0
        self.disconnected()

    @property
    def live_s(self) -> float:
        """From the first to the newest picture of this connection."""
        return 0.0 if self._first_ns is None else (self._newest_ns - self._first_ns) / 1e9

    @property
    def reading(self) -> ClockReading | None:
        """The clocks at the newest picture of this connection; None before one."""
        return None if self._first_ns is None else self._times.reading

    def disconnected(self) -> None:
        """Forget the connection."""
        self._first_ns: int | None = None
        self._newest_ns = 0
        self._keyed = False
        self._size: tuple[int, int] | None = None
        self._times = CaptureTimes(self._config.clock)
        self._judged: deque[tuple[int, bool]] = deque()

    def connected(self) -> None:
        """A connection begins now."""
        self._connected_ns = monotonic_ns()
        self._generation += 1
        self._counts["connections"] += 1

    def of(self, packet: VideoPacket) -> Iterator[Picture]:
        """The good pictures that become ready with this packet.

        Raises:
            ConnectionEnded: no picture for too long after connecting, or mostly broken ones.
        """
        self._anchor(packet)
        self._keyed = self._keyed or packet.is_keyframe
        if self._keyed:
            yield from self._decoded(packet)
        waited_s = (monotonic_ns() - self._connected_ns) / 1e9
        if self._first_ns is None and waited_s >= self._config.first_frame_s:
            raise ConnectionEnded(failure("no_key_frame", name=self._name))

    def _decoded(self, packet: VideoPacket) -> Iterator[Picture]:
        started_ns = monotonic_ns()
        frames = decoded(packet)
        arrived_ns, arrived_at_ns = both_ns()
        if frames is None:
            self._counts["undecodable"] += 1
            self._judge(arrived_ns, broken=True)
            return
        for frame in frames:
            self._judge(arrived_ns, broken=frame.is_corrupt)
            decode_ms = (arrived_ns - started_ns) / 1e6 / len(frames)
            if frame.is_corrupt:
                self._counts["corrupt"] += 1
            else:
                yield self._picture(
                    frame,
                    arrived_ns=arrived_ns,
                    arrived_at_ns=arrived_at_ns,
                    decode_ms=decode_ms,
                )
            self._index += 1

    def _picture(
        self, frame: VideoFrame, *, arrived_ns: int, arrived_at_ns: int, decode_ms: float
    ) -> Picture:
        self._see_size(frame.width, frame.height)
        self._first_ns = arrived_ns if self._first_ns is None else self._first_ns
        self._newest_ns = arrived_ns
        self._counts["pictures"] += 1
        pts_s = _seconds(frame)
        stamp = self._times.stamp(pts_s=pts_s, arrived_ns=arrived_ns, arrived_at_ns=arrived_at_ns)
        return Picture(
            image=frame,
            pts_s=pts_s,
            captured_at_ns=stamp.captured_at_ns,
            arrived_ns=arrived_ns,
            clock=stamp.clock,
            generation=self._generation,
            index=self._index,
            decode_ms=decode_ms,
        )

    def _see_size(self, width: int, height: int) -> None:
        if width * height > self._config.max_pixels:
            raise ConnectionEnded(failure("too_large", name=self._name, fact=f"{width}x{height}"))
        if self._size not in (None, (width, height)):
            self._generation += 1
        self._size = (width, height)

    def _anchor(self, packet: VideoPacket) -> None:
        if packet.pts is None or not packet.has_sidedata("prft"):
            return
        camera_ns = producer_wall_ns(bytes(packet.get_sidedata("prft")))
        if camera_ns is not None:
            pts_s = float(packet.pts * packet.time_base)
            self._times.anchor(pts_s=pts_s, wall_ns=camera_ns, arrived_ns=monotonic_ns())

    def _judge(self, now_ns: int, *, broken: bool) -> None:
        """Keep the verdicts of the last seconds; give up when most of a full window are bad."""
        self._judged.append((now_ns, broken))
        window_ns = self._config.bad_window_s * 1e9
        if now_ns - self._judged[0][0] < window_ns:
            return
        bad = sum(is_broken for _, is_broken in self._judged)
        if len(self._judged) >= _FEWEST_JUDGED and bad > self._config.bad_fraction * len(
            self._judged
        ):
            raise ConnectionEnded(failure("decode_errors", name=self._name))
        while now_ns - self._judged[0][0] >= window_ns:
            self._judged.popleft()


def _seconds(frame: VideoFrame) -> float | None:
    return (
        None if frame.pts is None or frame.time_base is None else float(frame.pts * frame.time_base)
    )
