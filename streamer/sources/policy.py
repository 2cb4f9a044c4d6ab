"""Who may be contacted: schemes, addresses and folders that a source may name.

URLs come from users. What is checked here is checked again at each reconnect, because a name can
point elsewhere by then. Redirects that a camera sends are followed by FFmpeg without asking us
(RTSP 302): egress rules of the network have to close that door.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from streamer.errors import ConfigError, SourceForbidden, SourceUnavailable
from streamer.sources.addresses import Address, effective, parse_networks, why_denied
from streamer.sources.redact import redact

__all__ = ["Resolver", "SourcePolicy", "resolve"]

Resolver = Callable[[str], tuple[Address, ...]]

_NETWORK_SCHEMES = frozenset({"rtsp", "rtsps", "http", "https"})
_LOCAL_SCHEMES = frozenset({"synthetic"})
_HOST = re.compile(r"[A-Za-z0-9._\-]{1,253}|[0-9A-Fa-f:.]{2,45}")
_CONTROL_OR_SPACE = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029]")
_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ENCODE = (
    "Percent-encode special characters in user and password:"
    " '@' as %40, ':' as %3A, '/' as %2F, '?' as %3F, '#' as %23, '%' as %25."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePolicy:
    """What a source URL may name. The default lets public RTSP cameras and synthetic worlds in."""

    schemes: tuple[str, ...] = ("synthetic", "rtsp", "rtsps")
    """Allowed URL schemes, lower case. `file` needs no entry: see `allow_files`."""
    allowed_cidrs: tuple[str, ...] = ()
    """Networks in which sources may live although they are private, loopback or link-local.
    Cameras usually live in one of them. Cloud metadata addresses stay denied."""
    allow_files: tuple[str, ...] = ()
    """Folders below which `file:` URLs may point, links resolved. Empty: no files at all."""
    max_url_chars: int = 2048
    """Longest URL taken."""

    def __post_init__(self) -> None:
        known = _NETWORK_SCHEMES | _LOCAL_SCHEMES
        for scheme in self.schemes:
            if scheme not in known:
                raise ConfigError(
                    f"Source scheme {scheme!r} is unknown; choose from {', '.join(sorted(known))}"
                    " (files are allowed by allow_files)."
                )
        try:
            parse_networks(self.allowed_cidrs)
        except ValueError as error:
            raise ConfigError(
                f"allowed_cidrs holds {error}; write networks such as 192.168.1.0/24."
            ) from error
        for root in self.allow_files:
            if not Path(root).is_absolute():
                raise ConfigError(f"allow_files holds {root!r}; folders must be absolute paths.")
        if self.max_url_chars < 1:
            raise ConfigError(f"max_url_chars is {self.max_url_chars}; it must be 1 or more.")

    def check(self, url: str, *, resolver: Resolver | None = None) -> None:
        """Refuse what must not be contacted. Resolves names, so it may block: use a thread.

        Args:
            url: as the user gave it, credentials included.
            resolver: name -> all of its addresses; None: the system's.

        Raises:
            ConfigError: not a usable URL; the sentence says how to write it.
            SourceForbidden: scheme, address or path is not allowed; the sentence says what to set.
            SourceUnavailable: the host name does not resolve now.
        """
        scheme = self._scheme(url)
        if scheme == "file":
            self.file_path(url)
        elif scheme in _NETWORK_SCHEMES:
            host = _host(url)
            self._check_host(host, url=url, addresses=(resolver or resolve)(host))

    def file_path(self, url: str) -> Path:
        """The real path of a `file:` URL, links resolved; open this one.

        Raises:
            ConfigError: not a `file:///absolute/path` URL.
            SourceForbidden: outside of every allowed folder.
            SourceUnavailable: no such file.
        """
        if self._scheme(url) != "file":
            raise ConfigError(f"{redact(url)} is not a file: URL.")
        parts = urlsplit(url)
        path = Path(unquote(parts.path))
        if parts.netloc not in ("", "localhost") or not path.is_absolute() or "\0" in str(path):
            raise ConfigError(
                f"{redact(url)} names no local file; write file:///absolute/path (three slashes)."
            )
        return self._real_path(path)

    def _scheme(self, url: str) -> str:
        if not url or len(url) > self.max_url_chars:
            raise ConfigError(
                f"A source URL has 1 to {self.max_url_chars} characters; this one has {len(url)}."
            )
        scheme, colon, _ = url.partition(":")
        scheme = scheme.lower()
        if not colon or not re.fullmatch(r"[a-z][a-z0-9+.\-]*", scheme):
            raise ConfigError(
                f"The source {redact(url)!r} has no scheme; write rtsp://host/path,"
                " file:///path or synthetic:scene."
            )
        if _CONTROL_OR_SPACE.search(url):
            raise ConfigError(
                f"The source {redact(url)!r} holds a space or control character; write it as %XX."
            )
        if scheme == "file":
            return scheme
        if scheme not in self.schemes:
            raise SourceForbidden(
                f"Sources with scheme {scheme!r} are not allowed here; allowed:"
                f" {', '.join((*self.schemes, *(('file',) if self.allow_files else ())))}."
                " An operator adds schemes with STREAMER_SOURCES__SCHEMES."
            )
        return scheme

    def _real_path(self, path: Path) -> Path:
        try:
            real = path.resolve()
            roots = [Path(root).resolve() for root in self.allow_files]
        except (OSError, RuntimeError) as error:
            raise SourceUnavailable(f"The path {str(path)!r} cannot be resolved.") from error
        if not any(real.is_relative_to(root) for root in roots):
            raise SourceForbidden(
                f"The file {str(path)!r} is not below an allowed folder; an operator"
                f" allows one with STREAMER_SOURCES__ALLOW_FILES='[\"{path.parent}\"]'."
            )
        if not real.is_file():
            raise SourceUnavailable(f"There is no file {str(path)!r}.")
        return real

    def _check_host(self, host: str, *, url: str, addresses: tuple[Address, ...]) -> None:
        if not addresses:
            raise SourceUnavailable(f"The host {host} of {redact(url)} has no address.")
        allowed = parse_networks(self.allowed_cidrs)
        for address in addresses:
            kind = why_denied(address, allowed)
            if kind:
                raise SourceForbidden(_denial(host, address=effective(address), kind=kind))


def resolve(host: str) -> tuple[Address, ...]:
    """All A and AAAA addresses of a name or literal, by the system's resolver. Blocks.

    Raises:
        SourceUnavailable: the name does not resolve.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SourceUnavailable(
            f"The host name {host} does not resolve; check it, and the DNS of this machine."
        ) from error
    texts = dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found)
    return tuple(ipaddress.ip_address(text) for text in texts)


def _denial(host: str, *, address: Address, kind: str) -> str:
    where = host if host == str(address) else f"{host} ({address})"
    sentence = f"The source host {where} is {kind}, which sources may not use"
    if "loopback" in kind or "private" in kind or "link-local" in kind:
        bits = address.max_prefixlen
        sentence += (
            f"; an operator allows it with STREAMER_SOURCES__ALLOWED_CIDRS='[\"{address}/{bits}\"]'"
        )
    return sentence + "."


def _host(url: str) -> str:
    shown = redact(url)
    if not url.isascii():
        raise ConfigError(f"{shown} holds non-ASCII characters. {_ENCODE}")
    if _BAD_PERCENT.search(url):
        raise ConfigError(f"{shown} holds a '%' that starts no %XX code. {_ENCODE}")
    parts = _split(url, shown=shown)
    host = parts.hostname or ""
    if not _HOST.fullmatch(host):
        what = "no host" if not host else "a host name that cannot be one"
        raise ConfigError(f"{shown} has {what}; write {parts.scheme}://host:port/path. {_ENCODE}")
    return host


def _split(url: str, *, shown: str) -> SplitResult:
    rest = url.partition("://")[2]
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "\\" in url or rest.count("@") > 1 or "@" in rest.removeprefix(authority):
        raise ConfigError(f"{shown} holds a raw special character. {_ENCODE}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise ConfigError(
            f"{shown} has a port that is no number from 1 to 65535, or stray brackets. {_ENCODE}"
        )
    return parts
