"""What a gateway needs to work on a caller's own file, and how many it takes at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from streamer.errors import StreamerError, SubscriberTooSlow
from streamer.gateway.spool import Spool, opened_spool
from streamer.gateway.upload_config import UploadConfig
from streamer.gateway.upload_errors import TooManyUploads
from streamer.sessions.config import SessionConfig
from streamer.sessions.served import Served
from streamer.sources.config import FileConfig
from streamer.telemetry import Meter

__all__ = ["Uploads"]

_RETRY_S = 5.0


class Uploads:
    """The way to the models, and the places for files. One per process.

    Args:
        served: gives the models, or raises `CapacityError` while there are none.
        config: bounds.
        files: what a video may ask of its decoder.
        session: how files are played.
    """

    def __init__(
        self,
        served: Callable[[], Served],
        *,
        config: UploadConfig | None = None,
        files: FileConfig | None = None,
        session: SessionConfig | None = None,
    ) -> None:
        self.served = served
        self.config = config or UploadConfig()
        self.files = files or FileConfig()
        self.session = session or SessionConfig()
        self.active = 0
        """Uploads received or worked on now."""

    @contextmanager
    def place(self, meter: Meter, *, what: str) -> Iterator[Spool]:
        """Room for one file, from before its first byte until after its last answer.

        Args:
            what: `anticipations` or `latents`, for the count of how it ended.

        Raises:
            TooManyUploads: all places are taken.
            CapacityError: there is no room on the disk.
        """
        outcome = "failed"
        try:
            if self.active >= self.config.max_concurrent:
                raise TooManyUploads(
                    f"This gateway works on {self.active} uploads, as many as it may at once.",
                    _RETRY_S,
                )
            self.active += 1
            try:
                with opened_spool(self.config.folder) as spool:
                    yield spool
            finally:
                self.active -= 1
            outcome = "done"
        except (ClientDisconnect, SubscriberTooSlow, asyncio.CancelledError):
            outcome = "left"
            raise
        except (StreamerError, HTTPException, RequestValidationError):
            outcome = "refused"
            raise
        finally:
            meter.add("streamer_uploads_total", what=what, outcome=outcome)
