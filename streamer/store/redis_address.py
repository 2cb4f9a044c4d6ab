"""Where a Redis is: a checked URL, and the form of it that may be shown."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

from streamer.errors import ConfigError

__all__ = ["check_address", "shown_address"]

_SCHEMES = ("redis", "rediss", "unix")
_OPTIONS = frozenset(
    {
        "db",
        "ssl_ca_certs",
        "ssl_ca_path",
        "ssl_cert_reqs",
        "ssl_certfile",
        "ssl_check_hostname",
        "ssl_keyfile",
    }
)
_FORMS = (
    "redis://HOST:PORT/DB, rediss://HOST:PORT/DB (TLS) or unix:///PATH?db=DB,"
    " each with USER:PASSWORD@ in front of the host if needed"
)


def check_address(url: str) -> None:
    """Raises `ConfigError` when `url` is not the URL of one Redis; it never shows a secret."""
    try:
        parts = urlsplit(url)
        _check_place(parts.scheme, host=parts.hostname, path=parts.path, port=parts.port)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
    except ValueError as error:
        raise ConfigError(f"store.url cannot be read; it looks like {_FORMS}.") from error
    unknown = sorted(options.keys() - _OPTIONS)
    if unknown:
        raise ConfigError(
            f"store.url has the option {unknown[0][:40]!r}; it takes {', '.join(sorted(_OPTIONS))}."
        )
    is_tls = parts.scheme == "rediss"
    if not is_tls and any(name.startswith("ssl_") for name in options):
        raise ConfigError("store.url has options for TLS; that needs the scheme rediss.")


def _check_place(scheme: str, *, host: str | None, path: str, port: int | None) -> None:
    if scheme not in _SCHEMES:
        raise ConfigError(f"store.url has the scheme {scheme[:20]!r}; it looks like {_FORMS}.")
    if port == 0 or not (path if scheme == "unix" else host):
        raise ValueError("no place to connect to")
    if scheme != "unix" and path.strip("/") and not path.strip("/").isdecimal():
        raise ConfigError(f"store.url ends in the database {path[:20]!r}; it must be a number.")


def shown_address(url: str) -> str:
    """The URL without user, password and options."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
