"""What a camera says of its wall clock, packet by packet -> the word that holds. Sans-I/O.

FFmpeg puts a wall time on every packet once a sender report has come and goes on from that report
until the next: all packets of one report have the same offset between wall and presentation time,
to the microsecond. So another offset is another report, and a report that repeats the one before
exactly cannot be told from silence.
"""

from __future__ import annotations

from collections import deque

from streamer.sources.clock_config import CaptureClockConfig

__all__ = ["SenderReports"]

_SAME_NS = 2_000


class SenderReports:
    """The offset of the camera's wall clock from its presentation times.

    A report close to what holds is taken at once. One further away is doubted: what held before
    goes on until a second report agrees, or nothing disagrees for a while.
    """

    def __init__(self, config: CaptureClockConfig) -> None:
        self.seen = 0
        """Reports told apart."""
        self.outliers = 0
        """Of these, doubted and refuted."""
        self.jumps = 0
        """Times a doubted one turned out to be right."""
        self._jump_ns = round(config.jump_s * 1e9)
        self._confirm_ns = round(config.confirm_s * 1e9)
        self._packets: deque[int] = deque(maxlen=config.median_packets)
        self._newest_ns: int | None = None
        self.forget()

    @property
    def is_doubted(self) -> bool:
        """The newest report disagrees with what holds."""
        return self._doubted_ns is not None

    def forget(self) -> None:
        """The presentation times begin anew, so that no offset holds any more: not that of the
        newest report either, which FFmpeg goes on from until there is another."""
        self.offset_ns: int | None = None
        """Wall time minus presentation time; None before a report."""
        self.newest_at_ns: int | None = None
        """Monotonic time of the newest report."""
        self._packets.clear()
        self._doubted_ns: int | None = None
        self._doubted_at_ns = 0

    def add(self, offset_ns: int, *, at_ns: int) -> None:
        """Take the offset of one packet that came at monotonic `at_ns`."""
        self._packets.append(offset_ns)
        if 2 * len(self._packets) <= (self._packets.maxlen or 1):
            return
        offset_ns = sorted(self._packets)[len(self._packets) // 2]
        if self._newest_ns is None or abs(offset_ns - self._newest_ns) > _SAME_NS:
            self.seen += 1
            self._newest_ns, self.newest_at_ns = offset_ns, at_ns
            self._judge(offset_ns, at_ns=at_ns)
        elif self._doubted_ns is not None and at_ns - self._doubted_at_ns >= self._confirm_ns:
            self._jump_to(offset_ns)

    def _judge(self, offset_ns: int, *, at_ns: int) -> None:
        if self.offset_ns is None or self._is_near(offset_ns, self.offset_ns):
            self.outliers += self.is_doubted
            self.offset_ns, self._doubted_ns = offset_ns, None
        elif self._doubted_ns is not None and self._is_near(offset_ns, self._doubted_ns):
            self._jump_to(offset_ns)
        else:
            self.outliers += self.is_doubted
            self._doubted_ns, self._doubted_at_ns = offset_ns, at_ns

    def _jump_to(self, offset_ns: int) -> None:
        self.jumps += 1
        self.offset_ns, self._doubted_ns = offset_ns, None

    def _is_near(self, one_ns: int, other_ns: int) -> bool:
        return abs(one_ns - other_ns) <= self._jump_ns
