"""One connection to an RTSP camera through PyAV. Opened, read and closed by one thread.

What is unusual here, all measured with PyAV 18.1:

- FFmpeg ignores mistyped options silently, so they stand in one tested table.
- The read that runs into its timeout returns the frame that the parser still held, not an error.
  The next read may start inside a packet and never find its way back. So a packet that took as
  long as the timeout is the end: it is thrown away and nothing more is asked for.
- A camera that dies is a normal end of the iteration.
- ``probesize=32`` opens in 0.2 s instead of 2 s, but a camera that does not describe its picture
  (no SPS in the SDP) then has size 0: one more try with FFmpeg's own probing.
- Asking for video only makes FFmpeg ask a camera without video to play nothing, which the camera
  refuses: one more try that takes sound too tells this from other refusals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import TypeAlias

import av
from av.container import InputContainer
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from streamer.clock import monotonic_ns
from streamer.sources.rtsp_config import RtspConfig
from streamer.sources.rtsp_failures import ConnectionEnded, failure, translated
from streamer.sources.rtsp_transport import TransportName

__all__ = ["VideoPacket", "connected", "decoded", "packets", "rtsp_options"]

VideoPacket: TypeAlias = "av.Packet[VideoStream]"


def rtsp_options(
    url: str,
    *,
    config: RtspConfig,
    transport: TransportName = "tcp",
    probing: bool = False,
    media: str = "video",
) -> dict[str, str]:
    """FFmpeg's options. `probing` lets it look into the stream before it answers."""
    options = {
        "rtsp_transport": transport,
        "protocol_whitelist": "tcp,rtp" if transport == "tcp" else "tcp,rtp,udp",
        "allowed_media_types": media,
        "timeout": str(round(max(config.open_timeout_s, config.read_timeout_s) * 1e6)),
    }
    if url.lower().startswith("rtsps:"):
        options["protocol_whitelist"] += ",tls"
        if config.tls_ca_file:
            options |= {"tls_verify": "1", "ca_file": config.tls_ca_file}
    if not probing:
        options["probesize"] = "32"
    return options


@contextmanager
def connected(
    url: str, *, name: str, config: RtspConfig, transport: TransportName = "tcp"
) -> Iterator[VideoStream]:
    """The camera's video stream, ready to be decoded by one thread; closed on leaving.

    Raises:
        ConnectionEnded: cannot be opened, or there is no video that we can use.
    """
    ask = partial(rtsp_options, url, config=config, transport=transport)
    container = _open_telling_no_video(url, ask, name=name, config=config)
    if container.streams.video and not _pixels(container.streams.video[0]):
        container.close()
        container = _open(url, ask(probing=True), name=name, config=config)
    with closing(container):
        yield _prepared(container, name=name, config=config)


def packets(stream: VideoStream, *, name: str, config: RtspConfig) -> Iterator[VideoPacket]:
    """Packets as they come; never ends by itself.

    Raises:
        ConnectionEnded: silence, end of stream, or a broken connection.
    """
    limit_s = config.read_timeout_s
    container = stream.container
    assert isinstance(container, InputContainer)
    read = partial(next, container.demux(stream), None)
    while True:
        asked_ns = monotonic_ns()
        packet = translated(read, phase="read", name=name, timeout_s=limit_s)
        if packet is None or packet.size == 0:
            raise ConnectionEnded(failure("eof", name=name))
        if (monotonic_ns() - asked_ns) / 1e9 >= limit_s:
            raise ConnectionEnded(failure("stalled", name=name, fact=f"silent for {limit_s:g} s"))
        yield packet


def decoded(packet: VideoPacket) -> list[VideoFrame] | None:
    """The pictures that become ready with this packet; None when it cannot be decoded."""
    try:
        return packet.decode()
    except av.FFmpegError:
        return None


def _open_telling_no_video(
    url: str, ask: Callable[..., dict[str, str]], *, name: str, config: RtspConfig
) -> InputContainer:
    try:
        return _open(url, ask(), name=name, config=config)
    except ConnectionEnded as ended:
        if ended.failure.reason != "rejected":
            raise
        container = _open(url, ask(media="video+audio"), name=name, config=config)
        if container.streams.video:
            container.close()
            raise
        return container


def _open(url: str, options: dict[str, str], *, name: str, config: RtspConfig) -> InputContainer:
    timeout = (config.open_timeout_s, config.read_timeout_s)
    call = partial(av.open, url, mode="r", format="rtsp", options=options, timeout=timeout)
    return translated(call, phase="open", name=name, timeout_s=config.open_timeout_s)


def _prepared(container: InputContainer, *, name: str, config: RtspConfig) -> VideoStream:
    if not container.streams.video:
        raise ConnectionEnded(failure("no_video", name=name))
    stream = container.streams.video[0]
    codec = stream.codec_context
    if codec is None:
        raise ConnectionEnded(failure("unsupported", name=name))
    if _pixels(stream) > config.max_pixels:
        size = f"{codec.width}x{codec.height}"
        raise ConnectionEnded(failure("too_large", name=name, fact=size))
    codec.thread_count = 1  # frame threads would hold back one frame each
    # A guard of memory against streams that grow; without effect in av.open. FFmpeg counts aligned
    # widths, so it gets room; the exact limit is checked on each picture.
    codec.options = {"max_pixels": str(2 * config.max_pixels)}
    return stream


def _pixels(stream: VideoStream) -> int:
    codec = stream.codec_context
    return codec.width * codec.height if codec is not None else 0
