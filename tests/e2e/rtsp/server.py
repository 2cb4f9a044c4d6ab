"""A camera: GStreamer's RTSP server with a test picture. Run by the system's Python, which has gi.

Prints ``ready <port>`` when it listens. Takes one command a line on standard input: ``stall``,
``resume``, ``resize <width> <height>``; ends when standard input does.
"""

import argparse
import json
import sys
import threading

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtsp", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer  # noqa: E402

VIDEO = (
    "videotestsrc is-live=true pattern={pattern} ! videoscale ! capsfilter name=size"
    " caps=video/x-raw,format=I420,width={width},height={height},framerate={fps}/1"
    " ! x264enc tune=zerolatency speed-preset=ultrafast bitrate=300 key-int-max={fps}"
    " ! video/x-h264,profile=baseline ! valve name=valve"
    " ! rtph264pay name=pay0 pt=96 config-interval=-1"
)
AUDIO = (
    "audiotestsrc is-live=true ! audio/x-raw,rate=8000,channels=1"
    " ! alawenc ! rtppcmapay name=pay0 pt=8"
)


def main() -> None:
    options = parse()
    Gst.init(None)
    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service(str(options.port))
    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(f"( {AUDIO if options.audio_only else video(options)} )")
    factory.set_shared(True)
    medias = []
    factory.connect("media-configure", lambda _, media: medias.append(media))
    if options.report_every_s:
        factory.connect("media-configure", report_often, options.report_every_s)
    if options.password:
        protect(server, factory, options)
    server.get_mount_points().add_factory(options.path, factory)
    if server.attach(None) == 0:
        sys.exit(f"cannot listen on port {options.port}")
    print("ready", server.get_bound_port(), flush=True)
    loop = GLib.MainLoop()
    threading.Thread(target=obey, args=(options, medias, loop), daemon=True).start()
    loop.run()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("options", help="JSON object")
    return argparse.Namespace(**json.loads(parser.parse_args().options))


def video(options: argparse.Namespace) -> str:
    return VIDEO.format(
        pattern=options.pattern, width=options.width, height=options.height, fps=options.fps
    )


def report_often(_, media, every_s: float) -> None:
    def prepared(media) -> None:
        session = media.get_stream(0).get_rtpsession()
        session.set_property("rtcp-min-interval", int(every_s * Gst.SECOND))
        session.set_property("rtcp-fraction", 1e6)

    media.connect("prepared", prepared)


def protect(server, factory, options: argparse.Namespace) -> None:
    auth = GstRtspServer.RTSPAuth()
    token = GstRtspServer.RTSPToken()
    token.set_string("media.factory.role", "viewer")
    if options.digest:
        auth.set_supported_methods(GstRtsp.RTSPAuthMethod.DIGEST)
        auth.add_digest(options.user, options.password, token)
    else:
        basic = GstRtspServer.RTSPAuth.make_basic(options.user, options.password)
        auth.add_basic(basic, token)
    server.set_auth(auth)
    permissions = GstRtspServer.RTSPPermissions()
    for permission in ("media.factory.access", "media.factory.construct"):
        permissions.add_permission_for_role("viewer", permission, True)
    factory.set_permissions(permissions)


def obey(options: argparse.Namespace, medias: list, loop: GLib.MainLoop) -> None:
    for line in sys.stdin:
        word, *numbers = line.split()
        for media in medias:
            command(media.get_element(), word, numbers=numbers, fps=options.fps)
        print("done", word, flush=True)
    loop.quit()


def command(element, word: str, *, numbers: list, fps: int) -> None:
    if word == "resize":
        width, height = numbers
        caps = f"video/x-raw,format=I420,width={width},height={height},framerate={fps}/1"
        element.get_by_name("size").set_property("caps", Gst.Caps.from_string(caps))
    else:
        element.get_by_name("valve").set_property("drop", word == "stall")


if __name__ == "__main__":
    main()
