"""What one clip's answer gives to the next clip of its stream."""

from __future__ import annotations

from dataclasses import replace

from streamer.records import AnticipationReply, Clip, Prior, SurpriseState
from streamer.sessions.episodes import EpisodeKeeper
from streamer.telemetry import Meter

__all__ = ["Continuity"]


class Continuity:
    """Remembers the newest answer, and that one may have been lost.

    Args:
        episodes: looks into the log for what a lost answer would have said.
    """

    def __init__(self, stream: str, *, episodes: EpisodeKeeper, meter: Meter) -> None:
        self.prior: Prior | None = None
        self.surprise = SurpriseState()
        self._stream = stream
        self._episodes = episodes
        self._meter = meter
        self._is_unheard = False
        self._meter.add("streamer_surprise_episodes_total", 0, stream=stream)
        self._tell_open()

    async def catch_up(self) -> None:
        """Before the next request: when an answer was lost, its event may be in the log.

        Raises: as `EpisodeKeeper.recover`; call again then. Cancellation: likewise.
        """
        if not self._is_unheard:
            return
        if await self._episodes.recover(after_seq=self._heard_seq):
            self.surprise = replace(self.surprise, episode=None)
            self._tell_open()
        self._is_unheard = False

    async def has_event(self, clip: Clip) -> bool:
        """Whether this clip's event is in the log already, although its answer did not come.

        Raises: as `EpisodeKeeper.has_event`. Cancellation is safe.
        """
        if not self._is_unheard:
            return False
        return await self._episodes.has_event(end_ns=clip.end_ns, after_seq=self._heard_seq)

    def heard(self, reply: AnticipationReply) -> None:
        """The answer to the newest request."""
        before, now = self.surprise.episode, reply.surprise.episode
        self.prior, self.surprise = reply.prior, reply.surprise
        if now is not None and (before is None or now.id != before.id):
            self._meter.add("streamer_surprise_episodes_total", stream=self._stream)
        self._tell_open()

    def unheard(self) -> None:
        """It did not come: the event was published, or not."""
        self._is_unheard = True

    def closed(self) -> None:
        """The session is over, and with it whatever was open."""
        self.surprise = replace(self.surprise, episode=None)
        self._tell_open()

    @property
    def _heard_seq(self) -> int:
        return self.prior.seq if self.prior else 0

    def _tell_open(self) -> None:
        is_open = float(self.surprise.episode is not None)
        self._meter.observe("streamer_surprise_episode_open", is_open, stream=self._stream)
