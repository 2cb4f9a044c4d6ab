"""What can be wrong with an upload, besides the file itself."""

from __future__ import annotations

from streamer.errors import CapacityError, StreamerError

__all__ = [
    "FileFailed",
    "NoRoomOnDisk",
    "NotOfferedHere",
    "TooManyUploads",
    "UploadStalled",
    "VideoTooLong",
]


class NotOfferedHere(StreamerError):
    """This gateway has no way to the models."""

    code = "not_offered_here"
    http_status = 501


class UploadStalled(StreamerError):
    """The sender sent nothing, or next to nothing, for too long."""

    code = "upload_stalled"
    retryable = True
    http_status = 408


class TooManyUploads(CapacityError):
    """This gateway works on as many uploads as it may."""

    code = "too_many_uploads"
    http_status = 429


class NoRoomOnDisk(CapacityError):
    """The file does not fit where uploads wait."""

    code = "no_room_on_disk"
    http_status = 507


class FileFailed(StreamerError):
    """A file was anticipated up to where it failed.

    Args:
        message: sentence.
        reason: code of what happened, as its last `stream.state` has it.
    """

    code = "file_failed"

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message, reason)
        self.reason = reason


class VideoTooLong(StreamerError):
    """The video lasts longer than an upload may."""

    code = "video_too_long"
    http_status = 422
