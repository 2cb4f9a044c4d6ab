"""Whether a feed can ever give a horizon that its subscriber asks for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from streamer.errors import NotFound, ProtocolViolation
from streamer.events.schema import FeedOptions
from streamer.store.protocol import Store

__all__ = ["check_horizons"]

_SAME_HORIZON_S = 1e-3


async def check_horizons(store: Store, streams: Iterable[str], options: FeedOptions) -> None:
    """Safe to cancel.

    Raises:
        ProtocolViolation: one lies beyond what any of these streams foretells now.
        CapacityError: the store does not answer.
    """
    if options.horizons_s is None:
        return
    farthest: dict[str, tuple[float, ...]] = {}
    for stream in streams:
        with contextlib.suppress(NotFound):
            farthest[stream] = (await store.get_stream(stream)).spec.horizons_s
    largest_s = max((max(each) for each in farthest.values()), default=float("inf"))
    for wanted_s in options.horizons_s:
        if wanted_s > largest_s + _SAME_HORIZON_S:
            told = "; ".join(
                f"{stream}: {', '.join(f'{each:g}' for each in horizons_s)}"
                for stream, horizons_s in farthest.items()
            )
            raise ProtocolViolation(
                f"horizons_s: no stream of this feed looks {wanted_s:g} s ahead ({told[:200]})."
            )
