"""Errors keep their type and their facts when they cross a process."""

from __future__ import annotations

import pickle

import pytest

from streamer import errors

pytestmark = pytest.mark.contract

FACTS = {
    "HorizonUnreachable": (15.5,),
    "CapacityError": (2.0,),
    "StoreUnavailable": (2.0,),
    "DeadlineExceeded": (2.0,),
    "WorkerDied": (2.0,),
}


def _all_errors() -> list[errors.StreamerError]:
    classes = [getattr(errors, name) for name in errors.__all__]
    return [cls("a sentence with facts.", *FACTS.get(cls.__name__, ())) for cls in classes]


@pytest.mark.parametrize("error", _all_errors(), ids=lambda e: type(e).__name__)
def test_every_error_survives_pickling(error: errors.StreamerError) -> None:
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert back.args == error.args
    assert str(back) == "a sentence with facts."
    assert vars(back) == vars(error)


def test_every_leaf_has_its_own_code() -> None:
    codes = [error.code for error in _all_errors()]
    assert len(codes) == len(set(codes))


def test_websocket_close_codes_are_ours() -> None:
    assert {e.ws_close for e in _all_errors()} <= {1013, *range(4400, 4411), 4500}
