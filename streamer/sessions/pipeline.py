"""The seam between a session (no tensors) and the models (no camera): two calls per clip.

The local shell implements it with the cores of `streamer.serving`, the Ray shell with handles.
"""

from __future__ import annotations

from typing import Protocol

from streamer.records import AnticipationReply, AnticipationRequest, Clip, Encoded

__all__ = ["Pipeline"]


class Pipeline(Protocol):
    async def encode(self, clip: Clip) -> Encoded:
        """Clip -> latent, by reference. Cancellation loses the clip in flight, nothing else.

        Raises:
            CapacityError: the pool's queue is full or a replica died; this clip is to be dropped.
            NumericalError: the model gave no finite numbers for this clip.
            ModelError: the clip does not fit the model.
        """

    async def anticipate(self, encoded: Encoded, request: AnticipationRequest) -> AnticipationReply:
        """Latent -> futures -> surprise -> one `anticipation` event appended to the log.

        Raises:
            LeaseLost: the session is no longer the stream's owner and must end.
            CapacityError: no room or a replica died; the event was not published.
        """

    async def supersede(self, stream: str, clip: int) -> None:
        """A newer clip is encoded: the rollout of this one, wherever it is, ends with its next step
        and publishes the horizons it has, at least one. Its `anticipate` answers as always.

        A word, not a condition: nothing happens when that rollout is over or not begun, and who
        depends on it says it again. Cancellation is safe.

        Raises:
            CapacityError: not everybody could be told.
        """
