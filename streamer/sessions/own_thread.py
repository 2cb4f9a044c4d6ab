"""Calls that may hang (a name service, a dead file server) in a thread of their own.

The loop's own pool has a handful of threads: that many hanging cameras would keep everything else
that needs a thread waiting, of all streams.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

__all__ = ["in_own_thread"]

Answer = TypeVar("Answer")


async def in_own_thread(call: Callable[[], Answer], *, name: str) -> Answer:
    """Run `call` in a new daemon thread and wait for its answer.

    Cancellation: safe; the call itself runs on to its end and its answer is thrown away.
    """
    future: Future[Answer] = Future()
    future.set_running_or_notify_cancel()  # from here on it cannot be cancelled, only left

    def run() -> None:
        try:
            answer = call()
        except BaseException as error:  # raised again where it is awaited
            future.set_exception(error)
        else:
            future.set_result(answer)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await asyncio.wrap_future(future)
