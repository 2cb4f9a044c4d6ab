"""The shelf: what is put is taken once, too many and too old fall off and are counted."""

from __future__ import annotations

import pytest

from deployments.shelf import DropOldestShelf

pytestmark = pytest.mark.unit


def test_a_thing_is_taken_once() -> None:
    shelf: DropOldestShelf[str] = DropOldestShelf(4, max_age_ns=100)
    ticket = shelf.put("latent", now_ns=0)
    assert shelf.take(ticket) == "latent"
    assert shelf.take(ticket) is None
    assert len(shelf) == 0


def test_too_many_push_the_oldest_off() -> None:
    shelf: DropOldestShelf[int] = DropOldestShelf(2, max_age_ns=100)
    tickets = [shelf.put(number, now_ns=0) for number in range(3)]
    assert [shelf.take(ticket) for ticket in tickets] == [None, 1, 2]
    assert shelf.dropped == 1


def test_what_nobody_came_for_goes_with_age() -> None:
    shelf: DropOldestShelf[str] = DropOldestShelf(10, max_age_ns=100)
    old = shelf.put("old", now_ns=0)
    young = shelf.put("young", now_ns=90)
    newest = shelf.put("newest", now_ns=101)
    assert (len(shelf), shelf.dropped) == (2, 1)
    assert [shelf.take(ticket) for ticket in (old, young, newest)] == [None, "young", "newest"]


def test_what_was_put_back_is_there_again_as_the_newest() -> None:
    shelf: DropOldestShelf[str] = DropOldestShelf(2, max_age_ns=100)
    first, second = shelf.put("first", now_ns=0), shelf.put("second", now_ns=10)
    assert shelf.take(first) == "first"
    shelf.put_back("first", first, now_ns=20)
    third = shelf.put("third", now_ns=30)
    assert [shelf.take(ticket) for ticket in (first, second, third)] == ["first", None, "third"]


def test_an_unknown_ticket_is_nothing() -> None:
    shelf: DropOldestShelf[str] = DropOldestShelf(1, max_age_ns=1)
    assert shelf.take(7) is None
