"""Work for a caller that ends when the caller leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Send

from streamer.errors import CapacityError, SubscriberTooSlow

__all__ = ["attended", "send_part"]

Answer = TypeVar("Answer")


async def attended(
    work: Coroutine[Any, Any, Answer], *, receive: Receive, draining: asyncio.Event
) -> Answer:
    """Do `work` while the caller is there and the gateway is to go on.

    Args:
        receive: of a request whose body was read to its end.

    Cancellation: ends the work, too.

    Raises:
        ClientDisconnect: the caller left.
        CapacityError: the gateway is shutting down.
    """
    working = asyncio.ensure_future(work)
    others = [asyncio.ensure_future(_left(receive)), asyncio.ensure_future(draining.wait())]
    try:
        await asyncio.wait({working, *others}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        if draining.is_set():
            raise CapacityError("This gateway is shutting down.")
        raise ClientDisconnect
    finally:
        for task in (working, *others):
            task.cancel()
        await asyncio.wait({working, *others})


async def send_part(data: bytes, send: Send, *, patience_s: float, is_last: bool = False) -> None:
    """Send a part of a body; returns when there is room for the next one.

    Raises:
        SubscriberTooSlow: the reader took nothing for too long.
    """
    try:
        async with asyncio.timeout(patience_s):
            await send({"type": "http.response.body", "body": data, "more_body": not is_last})
    except TimeoutError:
        raise SubscriberTooSlow("The reader took nothing for too long.") from None


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
