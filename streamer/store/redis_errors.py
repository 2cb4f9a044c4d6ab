"""Errors of Redis in our words, translated at one edge."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager

from redis import exceptions as theirs

from streamer.errors import CapacityError, ConfigError, StreamerError

__all__ = ["OUT_OF_REACH", "translated"]

OUT_OF_REACH = (theirs.ConnectionError, theirs.TimeoutError, theirs.InvalidResponse, OSError)
"""No answer, or not one of Redis; `OSError` includes the `TimeoutError` of Python."""

_NOT_ALLOWED = (
    theirs.AuthenticationError,
    theirs.AuthenticationWrongNumberOfArgsError,
    theirs.AuthorizationError,
    theirs.NoPermissionError,
)
_FOR_NOW = {
    "OOM": "is out of memory: raise its maxmemory, or keep less (retain_s, store.max_events)",
    "LOADING": "is reading its data after a restart",
    "READONLY": "is a read-only replica",
    "MASTERDOWN": "is a replica that lost its primary",
    "MISCONF": "cannot write to its disk",
    "BUSY": "is busy with a long script",
    "NOREPLICAS": "has too few replicas to take writes",
    "CLUSTERDOWN": "is part of a cluster that is down",
    "TRYAGAIN": "is moving data",
}
_FOR_GOOD = {
    "WRONGTYPE": "holds other data under our keys; give this service its own store.prefix",
    "MOVED": "is a cluster; the store needs one Redis without cluster mode",
    "CROSSSLOT": "is a cluster; the store needs one Redis without cluster mode",
}
_CODE = re.compile(rf"\b({'|'.join([*_FOR_NOW, *_FOR_GOOD])})\b")


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Turn errors of redis-py into ours.

    Args:
        place: the server as it may be shown.

    Raises:
        CapacityError: out of reach, or it refuses for now.
        ConfigError: it refuses us, or can never serve as the store.
    """
    try:
        yield
    except _NOT_ALLOWED as error:
        raise ConfigError(
            f"The store at {place} refuses this user: {_reason(error)}. Check user and password in"
            " store.url or store.password, and what the user may do."
        ) from error
    except theirs.BusyLoadingError as error:  # for redis-py a connection error
        raise _for_now(f"The store at {place} {_FOR_NOW['LOADING']}.") from error
    except OUT_OF_REACH as error:
        raise _for_now(f"The store at {place} is out of reach: {_reason(error)}.") from error
    except theirs.ResponseError as error:
        known = _refused(place, error)
        if known is None:
            raise
        raise known from error


def _refused(place: str, error: theirs.ResponseError) -> StreamerError | None:
    # An error inside a script carries the code somewhere in its text.
    found = _CODE.search(f"{getattr(error, 'status_code', None) or ''} {error}")
    if found is None:
        return None
    code = found[1]
    if code in _FOR_GOOD:
        return ConfigError(f"The store at {place} {_FOR_GOOD[code]}.")
    return _for_now(f"The store at {place} {_FOR_NOW[code]}.")


def _for_now(sentence: str) -> CapacityError:
    # Spread, so that all streams do not come back in step.
    return CapacityError(sentence, random.uniform(0.5, 1.5))


def _reason(error: Exception) -> str:
    return str(error).rstrip(". ") or "no answer in time"
