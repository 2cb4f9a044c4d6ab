"""Who may be contacted, and what the refusals say."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest

from streamer.errors import ConfigError, SourceForbidden, SourceUnavailable
from streamer.sources.addresses import Address
from streamer.sources.policy import SourcePolicy, resolve

pytestmark = pytest.mark.unit

DEFAULT = SourcePolicy()


def pointing_to(*texts: str):
    addresses: tuple[Address, ...] = tuple(ipaddress.ip_address(text) for text in texts)
    return lambda host: addresses


@pytest.mark.parametrize(
    "url",
    [
        "rtsp://8.8.8.8/stream",
        "rtsp://8.8.8.8:8554/stream?channel=1",
        "RTSP://8.8.8.8/stream",
        "rtsps://user:secret@8.8.8.8/stream",
        "rtsp://user:p%40%3A%2F%23%3F%25%26%C3%A9@8.8.8.8/stream",
        "rtsp://[2001:4860:4860::8888]:554/stream",
        "synthetic:bouncing?seed=1&fps=15",
    ],
)
def test_allowed_by_default(url: str) -> None:
    DEFAULT.check(url)


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("127.0.0.1", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("64:ff9b::7f00:1", "loopback"),
        ("10.0.0.7", "private"),
        ("172.16.3.3", "private"),
        ("192.168.1.20", "private"),
        ("::ffff:192.168.1.20", "private"),
        ("2002:c0a8:114::1", "private"),
        ("fd12:3456::1", "private"),
        ("fec0::1", "private"),
        ("::7f00:1", "private"),
        ("::ffff:0:7f00:1", "private"),
        ("64:ff9b:1::7f00:1", "private"),
        ("100.64.0.1", "private"),
        ("169.254.10.10", "link-local"),
        ("fe80::1", "link-local"),
        ("169.254.169.254", "metadata"),
        ("fd00:ec2::254", "metadata"),
        ("100.100.100.200", "metadata"),
        ("168.63.129.16", "metadata"),
        ("224.0.0.5", "multicast"),
        ("ff02::1", "multicast"),
        ("0.0.0.0", "unspecified"),
        ("::", "unspecified"),
    ],
)
def test_addresses_denied_by_default(address: str, kind: str) -> None:
    with pytest.raises(SourceForbidden, match=kind):
        DEFAULT.check("rtsp://cam.example/stream", resolver=pointing_to(address))


def test_one_bad_address_of_several_is_enough() -> None:
    with pytest.raises(SourceForbidden, match=r"192\.168\.1\.20"):
        DEFAULT.check("rtsp://cam.example/s", resolver=pointing_to("8.8.8.8", "192.168.1.20"))


@pytest.mark.parametrize("literal", ["127.0.0.1", "[::1]", "2130706433", "0x7f000001", "127.1"])
def test_every_spelling_of_loopback_is_seen(literal: str) -> None:
    with pytest.raises(SourceForbidden, match="loopback"):
        DEFAULT.check(f"rtsp://{literal}/stream")


def test_the_denial_says_which_network_to_allow_and_that_allows_it() -> None:
    resolver = pointing_to("192.168.1.20")
    with pytest.raises(SourceForbidden) as caught:
        DEFAULT.check("rtsp://cam.example/s", resolver=resolver)
    assert "STREAMER_SOURCES__ALLOWED_CIDRS='[\"192.168.1.20/32\"]'" in str(caught.value)
    SourcePolicy(allowed_cidrs=("192.168.1.20/32",)).check(
        "rtsp://cam.example/s", resolver=resolver
    )


@pytest.mark.parametrize("address", ["169.254.169.254", "fd00:ec2::254", "0.0.0.0", "ff02::1"])
def test_no_network_allows_metadata_unspecified_or_multicast(address: str) -> None:
    policy = SourcePolicy(allowed_cidrs=("0.0.0.0/0", "::/0"))
    with pytest.raises(SourceForbidden):
        policy.check("rtsp://cam.example/s", resolver=pointing_to(address))


def test_an_ipv4_network_allows_the_mapped_form_too() -> None:
    policy = SourcePolicy(allowed_cidrs=("10.0.0.0/8",))
    policy.check("rtsp://cam.example/s", resolver=pointing_to("::ffff:10.1.2.3"))


@pytest.mark.parametrize(
    "url",
    [
        "http://8.8.8.8/live.m3u8",
        "https://8.8.8.8/live.m3u8",
        "rtmp://8.8.8.8/live",
        "udp://8.8.8.8:5004",
        "ftp://8.8.8.8/x",
        "gopher://8.8.8.8/x",
        "tcp://8.8.8.8:80",
        "concat:a.ts|b.ts",
        "subfile:,start,0,end,9,,:/etc/passwd",
        "crypto:file",
        "data:video/mp4;base64,AAAA",
        "lavfi:testsrc",
        "pipe:0",
        "sdp://x",
    ],
)
def test_other_schemes_are_forbidden(url: str) -> None:
    with pytest.raises(SourceForbidden, match="allowed: synthetic, rtsp, rtsps"):
        DEFAULT.check(url)


@pytest.mark.parametrize("url", ["/etc/passwd", "cam.mp4", "", "movie=x", "//host/x"])
def test_what_has_no_scheme_is_a_mistake(url: str) -> None:
    with pytest.raises(ConfigError):
        DEFAULT.check(url)


@pytest.mark.parametrize(
    "raw", ["pa@ss", "pa/ss", "pa?ss", "pa#ss", "12/34", "pa%ss", "pä", "p[", "p\\"]
)
def test_raw_special_characters_get_the_way_out_and_never_show(raw: str) -> None:
    with pytest.raises(ConfigError, match="Percent-encode") as caught:
        DEFAULT.check(f"rtsp://admin:{raw}@8.8.8.8/stream")
    assert raw not in str(caught.value).replace("/stream", "")
    assert "admin" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "match"),
    [
        ("rtsp:///stream", "no host"),
        ("rtsp:8.8.8.8/stream", "no host"),
        ("rtsp://8.8.8.8:0/s", "port"),
        ("rtsp://8.8.8.8:65536/s", "port"),
        ("rtsp://8.8.8.8:rtsp/s", "port"),
        ("rtsp://[::1/s", "brackets"),
        ("rtsp://a$b/s", "host name"),
        ("rtsp://8.8.8.8/a b", "control character"),
        ("rtsp://8.8.8.8/a\r\nb", "control character"),
        ("rtsp://8.8.8.8/\x00", "control character"),
        ("rtsp://8.8.8.8/" + "x" * 3000, "characters"),
    ],
)
def test_malformed_urls(url: str, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        DEFAULT.check(url)


def test_a_name_without_address_is_unavailable_not_forbidden() -> None:
    def nothing(host: str) -> tuple[Address, ...]:
        raise SourceUnavailable(f"{host} does not resolve")

    with pytest.raises(SourceUnavailable):
        DEFAULT.check("rtsp://cam.example/s", resolver=nothing)
    with pytest.raises(SourceUnavailable, match="no address"):
        DEFAULT.check("rtsp://cam.example/s", resolver=pointing_to())


def test_the_system_resolver_knows_literals_and_refuses_nonsense() -> None:
    assert resolve("127.0.0.1") == (ipaddress.ip_address("127.0.0.1"),)
    with pytest.raises(SourceUnavailable, match="does not resolve"):
        resolve("a" * 70 + ".example")


def test_files_are_forbidden_unless_a_folder_is_allowed(tmp_path: Path) -> None:
    clip = tmp_path / "my clip.mp4"
    clip.touch()
    with pytest.raises(SourceForbidden, match="STREAMER_SOURCES__ALLOW_FILES"):
        DEFAULT.check(clip.as_uri())
    policy = SourcePolicy(allow_files=(str(tmp_path),))
    policy.check(clip.as_uri() + "?pace=realtime")
    assert policy.file_path(clip.as_uri()) == clip.resolve()


@pytest.mark.parametrize(
    "spelling", ["{root}/../secret.mp4", "{root}/%2e%2e/secret.mp4", "{root}/link.mp4"]
)
def test_no_way_out_of_the_allowed_folder(tmp_path: Path, spelling: str) -> None:
    root = tmp_path / "allowed"
    root.mkdir()
    (tmp_path / "secret.mp4").touch()
    (root / "link.mp4").symlink_to(tmp_path / "secret.mp4")
    with pytest.raises(SourceForbidden, match="not below an allowed folder"):
        SourcePolicy(allow_files=(str(root),)).check("file://" + spelling.format(root=root))


def test_missing_files_and_other_hosts(tmp_path: Path) -> None:
    policy = SourcePolicy(allow_files=(str(tmp_path),))
    with pytest.raises(SourceUnavailable, match="no file"):
        policy.check(f"file://{tmp_path}/none.mp4")
    with pytest.raises(SourceUnavailable, match="no file"):
        policy.check(f"file://{tmp_path}")
    for url in (f"file://server{tmp_path}/a.mp4", "file:a.mp4", f"file://{tmp_path}/a%00.mp4"):
        with pytest.raises(ConfigError, match="names no local file"):
            policy.check(url)


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"allowed_cidrs": ("192.168.1.7/24",)}, "192.168.1.0/24"),
        ({"allowed_cidrs": ("cam.example",)}, "networks such as"),
        ({"schemes": ("rtsp", "lavfi")}, "lavfi"),
        ({"schemes": ("file",)}, "allow_files"),
        ({"allow_files": ("clips",)}, "absolute"),
        ({"max_url_chars": 0}, "max_url_chars"),
    ],
)
def test_wrong_settings(fields: dict[str, object], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        SourcePolicy(**fields)  # type: ignore[arg-type]
