#!/bin/sh
# Programs from outside Python that the tests talk to: a real GStreamer RTSP server and a real Redis.
set -eu
packages="gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad gstreamer1.0-plugins-ugly gir1.2-gst-rtsp-server-1.0 python3-gi redis-server"
have_rtsp() {
  /usr/bin/python3 -c "import gi; gi.require_version('Gst', '1.0'); gi.require_version('GstRtspServer', '1.0'); from gi.repository import Gst, GstRtspServer; Gst.init(None); assert all(Gst.ElementFactory.find(n) for n in ('x264enc', 'videotestsrc', 'rtph264pay', 'valve', 'alawenc'))" >/dev/null 2>&1
}
have() {
  { command -v redis-server || command -v valkey-server; } >/dev/null 2>&1 && have_rtsp
}
have && exit 0
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
  echo "installing the servers that the tests use: $packages"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null
  have && exit 0
fi
echo "The tests need a real GStreamer RTSP server and a real Redis. Install these packages (Debian names) and try again:" >&2
for package in $packages; do echo "  $package" >&2; done
exit 1
