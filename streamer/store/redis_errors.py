"""Errors of Redis in our words, translated at one edge."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager

from redis import exceptions as theirs

from streamer.errors import CapacityError, StoreUnavailable

__all__ = ["OUT_OF_REACH", "StoreRefused", "translated"]

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
_NOT_AS_IT_IS = {
    "WRONGTYPE": "holds other data under our keys; give this service its own store.prefix",
    "MOVED": "is a cluster; the store needs one Redis without cluster mode",
    "CROSSSLOT": "is a cluster; the store needs one Redis without cluster mode",
}
_NEVER_LOGGED_IN = "unauthenticated"
"""In the answer to a long command of a connection that would have to log in now."""
_CODE = re.compile(rf"\b({'|'.join([*_FOR_NOW, *_NOT_AS_IT_IS])})\b")


class StoreRefused(StoreUnavailable):
    """It refuses us, or cannot be the store as it is. At start that is a setting to be changed; for
    whoever runs it is an outage: an operator did that to the server, and can take it back."""


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Turn errors of redis-py into ours.

    Args:
        place: the server as it may be shown.

    Raises:
        StoreUnavailable: out of reach, or it refuses for now.
        StoreRefused: it refuses until somebody changes that.
    """
    try:
        yield
    except _NOT_ALLOWED as error:
        raise _refused_user(place, error) from error
    except theirs.BusyLoadingError as error:  # for redis-py a connection error
        raise _for_now(f"The store at {place} {_FOR_NOW['LOADING']}.") from error
    except OUT_OF_REACH as error:
        raise _for_now(f"The store at {place} is out of reach: {_reason(error)}.") from error
    except theirs.ResponseError as error:
        known = _refused(place, error)
        if known is None:
            raise
        raise known from error


def _refused(place: str, error: theirs.ResponseError) -> CapacityError | None:
    if _NEVER_LOGGED_IN in str(error):
        return _refused_user(place, error)
    # An error inside a script carries the code somewhere in its text.
    found = _CODE.search(f"{getattr(error, 'status_code', None) or ''} {error}")
    if found is None:
        return None
    code = found[1]
    if code in _NOT_AS_IT_IS:
        return StoreRefused(f"The store at {place} {_NOT_AS_IT_IS[code]}.", _retry_after_s())
    return _for_now(f"The store at {place} {_FOR_NOW[code]}.")


def _refused_user(place: str, error: Exception) -> StoreRefused:
    return StoreRefused(
        f"The store at {place} refuses this user: {_reason(error)}. Check user and password in"
        " store.url or store.password, and what the user may do.",
        _retry_after_s(),
    )


def _for_now(sentence: str) -> StoreUnavailable:
    return StoreUnavailable(sentence, _retry_after_s())


def _retry_after_s() -> float:
    return random.uniform(0.5, 1.5)  # spread, so that all streams do not come back in step


def _reason(error: Exception) -> str:
    return str(error).rstrip(". ") or "no answer in time"
