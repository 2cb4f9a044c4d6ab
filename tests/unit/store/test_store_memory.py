"""What is particular to the embedded store: its bounds in memory."""

from __future__ import annotations

import asyncio
import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.errors import ConfigError, NotFound
from streamer.records import StreamSpec
from streamer.store.config import StoreConfig
from streamer.store.expiring import Expiring
from streamer.store.logbook import Logbook
from streamer.store.memory import MemoryStore
from streamer.store.pictures import Pictures
from streamer.store.protocol import StoredPicture
from streamer.store.retained import RetainedLog
from streamer.store.signals import Signals

pytestmark = pytest.mark.unit


class Clock:
    def __init__(self):
        self.ns = 10**12

    def __call__(self):
        return self.ns

    def advance(self, seconds):
        self.ns += int(seconds * 1e9)


def logbook(clock, **bounds):
    return Logbook(config=StoreConfig(**bounds), now=clock)


def kept(log):
    return [entry.seq for entry in log.after(0, limit=10**6)]


def test_deleted_logs_are_emptied_beyond_their_bound():
    book = logbook(Clock(), max_deleted_logs=2)
    for stream in "abc":
        book.open(stream, retain_s=3600)
        book.append(stream, b"{}")
        book.retire(stream)
    assert [kept(book.get(stream)) for stream in "abc"] == [[], [1], [1]]
    book.open("a", retain_s=3600)
    assert book.append("a", b"{}") == 2


def test_a_stream_created_again_is_no_longer_a_deleted_one():
    book = logbook(Clock(), max_deleted_logs=1, max_deleted=1)
    book.open("a", retain_s=3600)
    book.append("a", b"{}")
    book.retire("a")
    book.open("a", retain_s=3600)
    for stream in "bc":
        book.open(stream, retain_s=3600)
        book.retire(stream)
    assert kept(book.get("a")) == [1]


def test_one_timer_per_log():
    book = logbook(Clock(), max_events=10)
    book.open("a", retain_s=3600)
    for _ in range(1000):
        book.append("a", b"{}")
    assert len(book._ends) == 1


def test_forgotten_streams_never_get_a_number_twice():
    book = logbook(Clock(), max_deleted=2)
    for stream, count in (("a", 5), ("b", 9), ("c", 1), ("d", 1)):
        book.open(stream, retain_s=3600)
        for _ in range(count):
            book.append(stream, b"{}")
        book.retire(stream)
    with pytest.raises(NotFound):
        book.get("b")
    book.open("a", retain_s=3600)
    assert book.append("a", b"{}") == 10
    book.open("d", retain_s=3600)
    assert book.append("d", b"{}") > 1


def test_all_logs_together_are_bounded_in_bytes():
    clock = Clock()
    book = logbook(clock, max_log_bytes=100, max_body_bytes=50)
    book.open("old", retain_s=3600)
    book.open("new", retain_s=3600)
    for _ in range(5):
        book.append("old", b'{"a":"bcd"}'[:10])
        clock.advance(1)
    for _ in range(8):
        book.append("new", b'{"a":"bcd"}'[:10])
        clock.advance(1)
    assert kept(book.get("old")) == [4, 5]
    assert kept(book.get("new")) == list(range(1, 9))


def test_silent_streams_age_out_when_others_speak():
    clock = Clock()
    book = logbook(clock)
    book.open("silent", retain_s=10)
    book.append("silent", b"{}")
    silent = book.get("silent")
    book.open("loud", retain_s=10)
    clock.advance(11)
    book.append("loud", b"{}")
    assert len(silent) == 0


def test_a_new_retention_holds_for_old_events():
    clock = Clock()
    book = logbook(clock)
    book.open("a", retain_s=1000)
    book.append("a", b"{}")
    book.retire("a")
    clock.advance(50)
    book.open("a", retain_s=10)
    assert kept(book.get("a")) == []


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=60))
def test_logbook_agrees_with_a_plain_model(steps):
    """Any mix of appends, deletions and time: same readable seqs as the obvious lists."""
    clock = Clock()
    book = logbook(clock, max_events=6, max_deleted_logs=100)
    model = {}
    for action, which in steps:
        stream = "abcde"[which]
        if action == 0 and stream not in model:
            book.open(stream, retain_s=5 + which)
            model[stream] = []
        elif action == 1 and stream in model:
            seq = book.append(stream, b"{}")
            assert seq == len(model[stream]) + 1
            model[stream].append(clock.ns)
        elif action == 2:
            clock.advance(which)
        for name, made_ns in model.items():
            limit_ns = clock.ns - (5 + "abcde".index(name)) * 10**9
            expected = [n + 1 for n, at_ns in enumerate(made_ns) if at_ns > limit_ns][-6:]
            assert kept(book.get(name)) == expected
            assert book.get(name).first_seq == len(made_ns) + 1 - len(expected)


def test_dropped_bodies_are_freed_at_once():
    log = RetainedLog(max_events=1000)
    log.retain_ns = 10**9
    for _ in range(100):
        log.append(bytes(bytearray(b"{%s}" % (b" " * 1000))), now_ns=0)
    for _ in range(50):
        log.drop_oldest()
    assert log.num_bytes == 50 * 1002
    assert sum(len(entry.body) for entry, _ in log._entries) == log.num_bytes


def test_list_does_not_grow_with_the_stream():
    log = RetainedLog(max_events=100)
    for _ in range(5000):
        log.append(b"{}", now_ns=0)
    assert len(log) == 100
    assert len(log._entries) <= 201


def test_expiring_forgets_what_nobody_asks_for():
    clock = Clock()
    values = Expiring(now=clock)
    for n in range(1000):
        values.put(f"k{n}", n, ttl_s=1)
        clock.advance(0.1)
    assert len(values._values) <= 11
    assert len(values._ends) <= 11
    assert [value for _, value in values.items()] == list(range(991, 1000))


def test_expiring_renewal_outlives_the_first_end():
    clock = Clock()
    values = Expiring(now=clock)
    values.put("a", 1, ttl_s=1)
    values.put("a", 2, ttl_s=10)
    clock.advance(5)
    assert list(values.items()) == [("a", 2)]
    values.drop("a")
    values.drop("a")
    assert values.get("a") is None


def album(clock, **bounds):
    return Pictures(config=StoreConfig(**bounds), now=clock)


def shown(at_ns, num_bytes=10):
    return StoredPicture(captured_at_ns=at_ns, media_type="image/jpeg", body=bytes(num_bytes))


def test_all_pictures_together_are_bounded_in_bytes():
    pictures = album(Clock(), max_picture_bytes=50, max_pictures_bytes=100)
    for n in range(8):
        pictures.put(f"s{n % 4}", "snapshot", shown(n), ttl_s=60)
    assert pictures.num_bytes == 80
    pictures.put("large", "latent", shown(8, 50), ttl_s=60)
    assert pictures.num_bytes == 100
    for stream, at_ns in (("s0", 4), ("s1", 5), ("s2", 6), ("s3", 7), ("large", 8)):
        kind = "latent" if stream == "large" else "snapshot"
        assert pictures.get(stream, kind, at_ns=None) == shown(at_ns, 50 if at_ns == 8 else 10)
    with pytest.raises(NotFound, match="there are 1"):
        pictures.get("s0", "snapshot", at_ns=0)


def test_pictures_of_silent_streams_go_when_others_speak():
    clock = Clock()
    pictures = album(clock)
    for n in range(5):
        pictures.put(f"silent{n}", "snapshot", shown(n), ttl_s=10)
    clock.advance(11)
    pictures.put("loud", "snapshot", shown(9), ttl_s=10)
    assert (pictures.num_bytes, len(pictures._kept), len(pictures._albums)) == (10, 1, 1)
    pictures.drop_stream("loud")
    assert (pictures.num_bytes, len(pictures._kept), len(pictures._albums)) == (0, 0, 0)


async def test_signals_cost_nothing_while_nobody_waits():
    signals = Signals()
    await signals.wait_until("a", lambda: False, timeout_s=0)
    await asyncio.sleep(0)  # the loop lets go of the timed-out wait
    gc.collect()
    assert len(signals._events) == 0
    signals.fire("a")


async def test_a_store_made_outside_of_the_loop_works():
    store = await asyncio.to_thread(MemoryStore)
    await store.create_stream("a", StreamSpec(source="x"))
    lease = await store.acquire_lease("a", owner="me", ttl_s=5)
    assert await store.append("a", lease=lease.token, body=b"{}") == 1


async def test_status_must_be_json():
    store = MemoryStore()
    await store.create_stream("a", StreamSpec(source="x"))
    lease = await store.acquire_lease("a", owner="me", ttl_s=5)
    with pytest.raises(TypeError):
        await store.put_status("a", {"at": object()}, lease=lease.token, ttl_s=1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_streams": 0},
        {"max_events": -1},
        {"max_pictures": 0},
        {"max_body_bytes": 10, "max_log_bytes": 5},
        {"max_picture_bytes": 10, "max_pictures_bytes": 5},
    ],
)
def test_config_refuses_what_cannot_work(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        StoreConfig(**wrong)
