"""What `streamer.store.protocol` promises, sentence by sentence, for every implementation."""

from __future__ import annotations

import asyncio
import pickle

import pytest

from streamer.errors import CapacityError, Conflict, LeaseLost, NotFound
from streamer.records import ModelInfo, StreamSpec
from streamer.store.config import StoreConfig
from streamer.store.protocol import Presence

pytestmark = pytest.mark.contract

SPEC = StreamSpec(source="synthetic:roundabout?seed=1")
OTHER = StreamSpec(source="synthetic:roundabout?seed=2")
TTL_S = 0.5
SOON_S = 5.0


async def running(store, stream="kitchen", *, spec=SPEC, ttl_s=60.0):
    await store.create_stream(stream, spec)
    return await store.acquire_lease(stream, owner="here", ttl_s=ttl_s)


async def fill(store, lease, count):
    return [
        await store.append(lease.stream, lease=lease.token, body=b'{"n":%d}' % n)
        for n in range(count)
    ]


async def seqs(store, stream="kitchen", *, after_seq=0, limit=256):
    log = await store.read(stream, after_seq=after_seq, limit=limit)
    return [entry.seq for entry in log.entries]


# registry ---------------------------------------------------------------------------------------
async def test_create_tells_new_from_known(store):
    record, is_new = await store.create_stream("kitchen", SPEC)
    assert is_new
    assert (record.stream, record.spec, record.desired) == ("kitchen", SPEC, "live")
    assert (record.outcome, record.revision) == ("", 1)
    assert record.created_ns > 0
    assert await store.create_stream("kitchen", SPEC) == (record, False)
    assert await store.get_stream("kitchen") == record


async def test_create_refuses_another_spec(store):
    await store.create_stream("kitchen", SPEC)
    with pytest.raises(Conflict, match="kitchen"):
        await store.create_stream("kitchen", OTHER)
    assert (await store.get_stream("kitchen")).spec == SPEC


async def test_create_is_bounded(kit):
    store = await kit.open(StoreConfig(max_streams=2))
    await store.create_stream("a", SPEC)
    await store.create_stream("b", SPEC)
    with pytest.raises(CapacityError):
        await store.create_stream("c", SPEC)
    assert not (await store.create_stream("b", SPEC))[1]
    await store.delete_stream("a")
    assert (await store.create_stream("c", SPEC))[1]


async def test_list_pages_in_id_order(store):
    for stream in ("d", "b", "a", "c"):
        await store.create_stream(stream, SPEC)
    await store.delete_stream("b")
    assert [record.stream for record in await store.list_streams()] == ["a", "c", "d"]
    assert [record.stream for record in await store.list_streams(limit=2)] == ["a", "c"]
    assert [record.stream for record in await store.list_streams(after="b")] == ["c", "d"]
    assert [record.stream for record in await store.list_streams(after="d")] == []


async def test_desired_changes_revision_only_on_change(store):
    await store.create_stream("kitchen", SPEC)
    assert (await store.set_desired("kitchen", "live")).revision == 1
    paused = await store.set_desired("kitchen", "paused")
    assert (paused.desired, paused.revision) == ("paused", 2)
    assert (await store.set_desired("kitchen", "paused")).revision == 2


async def test_finish_sets_outcome_and_desired_clears_it(store):
    lease = await running(store)
    await store.finish_stream("kitchen", lease=lease.token, outcome="ended")
    finished = await store.get_stream("kitchen")
    assert (finished.outcome, finished.revision) == ("ended", 2)
    again = await store.set_desired("kitchen", "live")
    assert (again.outcome, again.revision) == ("", 3)


async def test_finish_leaves_what_is_desired(store):
    lease = await running(store)
    await store.set_desired("kitchen", "paused")
    await store.finish_stream("kitchen", lease=lease.token, outcome="failed")
    finished = await store.get_stream("kitchen")
    assert (finished.desired, finished.outcome, finished.revision) == ("paused", "failed", 3)
    assert await store.list_streams() == [finished]


async def test_finish_needs_the_lease(store):
    lease = await running(store)
    await store.release_lease(lease)
    with pytest.raises(LeaseLost):
        await store.finish_stream("kitchen", lease=lease.token, outcome="failed")
    assert (await store.get_stream("kitchen")).outcome == ""


async def test_unknown_streams_are_not_found(store):
    for call in (
        store.get_stream("x"),
        store.set_desired("x", "live"),
        store.finish_stream("x", lease="t", outcome="ended"),
        store.delete_stream("x"),
        store.acquire_lease("x", owner="here", ttl_s=1),
        store.read("x", after_seq=0),
        store.wait("x", after_seq=0, timeout_s=0),
    ):
        with pytest.raises(NotFound, match="x"):
            await call


async def test_each_registry_change_moves_the_counter(store):
    seen = await store.wait_registry(seen=-1, timeout_s=SOON_S)
    lease = await running(store)
    for change in (
        None,
        store.set_desired("kitchen", "paused"),
        store.finish_stream("kitchen", lease=lease.token, outcome="ended"),
        store.delete_stream("kitchen"),
    ):
        if change is not None:
            await change
        now = await store.wait_registry(seen=seen, timeout_s=SOON_S)
        assert now != seen
        seen = now


async def test_registry_wait_wakes_up_and_times_out(store):
    seen = await store.wait_registry(seen=-1, timeout_s=0)
    assert await store.wait_registry(seen=seen, timeout_s=0.01) == seen
    waiting = asyncio.create_task(store.wait_registry(seen=seen, timeout_s=SOON_S))
    await asyncio.sleep(0)
    await store.create_stream("kitchen", SPEC)
    async with asyncio.timeout(SOON_S / 2):
        assert await waiting != seen


# leases -----------------------------------------------------------------------------------------
async def test_one_fresh_lease_per_stream(store):
    lease = await running(store)
    assert (lease.stream, lease.owner) == ("kitchen", "here")
    with pytest.raises(Conflict, match="here"):
        await store.acquire_lease("kitchen", owner="there", ttl_s=1)
    assert await store.lease_holders() == {"kitchen": "here"}


async def test_expired_lease_is_lost_and_can_be_taken(store, kit):
    old = await running(store, ttl_s=TTL_S)
    await kit.elapse(TTL_S * 1.5)
    assert await store.lease_holders() == {}
    with pytest.raises(LeaseLost):
        await store.renew_lease(old, ttl_s=60)
    with pytest.raises(LeaseLost):
        await store.append("kitchen", lease=old.token, body=b"{}")
    new = await store.acquire_lease("kitchen", owner="there", ttl_s=60)
    assert new.token != old.token
    with pytest.raises(LeaseLost):
        await store.renew_lease(old, ttl_s=60)
    assert await store.lease_holders() == {"kitchen": "there"}


async def test_renewal_extends(store, kit):
    lease = await running(store, ttl_s=TTL_S)
    for _ in range(3):
        await kit.elapse(TTL_S * 0.6)
        await store.renew_lease(lease, ttl_s=TTL_S)
    await store.append("kitchen", lease=lease.token, body=b"{}")


async def test_release_is_idempotent_and_ignores_stale_tokens(store):
    old = await running(store)
    await store.release_lease(old)
    await store.release_lease(old)
    new = await store.acquire_lease("kitchen", owner="there", ttl_s=60)
    await store.release_lease(old)
    assert await store.lease_holders() == {"kitchen": "there"}
    await store.renew_lease(new, ttl_s=60)


async def test_deleted_stream_loses_its_lease(store):
    lease = await running(store)
    await store.delete_stream("kitchen")
    with pytest.raises(LeaseLost):
        await store.renew_lease(lease, ttl_s=60)
    with pytest.raises(LeaseLost):
        await store.append("kitchen", lease=lease.token, body=b"{}")
    assert await store.lease_holders() == {}
    await store.create_stream("kitchen", SPEC)
    with pytest.raises(LeaseLost):
        await store.append("kitchen", lease=lease.token, body=b"{}")


# status and presence ----------------------------------------------------------------------------
async def test_status_is_newest_and_goes_with_its_ttl(store, kit):
    await store.create_stream("kitchen", SPEC)
    assert await store.get_status("kitchen") is None
    status = {"state": "live", "fps": 14.9, "drops": {"overflow": 2}}
    await store.put_status("kitchen", {"state": "starting"}, ttl_s=60)
    await store.put_status("kitchen", status, ttl_s=TTL_S)
    status["drops"]["overflow"] = 3
    assert await store.get_status("kitchen") == {
        "state": "live",
        "fps": 14.9,
        "drops": {"overflow": 2},
    }
    await kit.elapse(TTL_S * 1.5)
    assert await store.get_status("kitchen") is None


async def test_deleted_stream_has_no_status(store):
    await store.create_stream("kitchen", SPEC)
    await store.put_status("kitchen", {"state": "live"}, ttl_s=60)
    await store.delete_stream("kitchen")
    assert await store.get_status("kitchen") is None


async def test_presence_by_kind_repeats_and_ends(store, kit):
    info = ModelInfo(
        name="tiny",
        fingerprint="3fa9c1",
        trained=False,
        crop=64,
        tubelet=2,
        patch=16,
        trained_frames=64,
        dtype="float32",
        config={"hidden_size": 192},
    )
    encoder = Presence(kind="encoder", replica="e1", model=info)
    await store.announce(encoder, ttl_s=TTL_S)
    await store.announce(Presence(kind="ingest", replica="i1"), ttl_s=60)
    assert await store.present("encoder") == [encoder]
    await kit.elapse(TTL_S * 0.6)
    await store.announce(encoder, ttl_s=TTL_S)
    await kit.elapse(TTL_S * 0.6)
    assert await store.present("encoder") == [encoder]
    await kit.elapse(TTL_S)
    assert await store.present("encoder") == []
    assert [each.replica for each in await store.present("ingest")] == ["i1"]
    assert await store.present("rollout") == []


async def test_presences_of_a_kind_end_one_by_one(store, kit):
    for replica, ttl_s in (("e1", 60), ("e2", TTL_S), ("e3", 60)):
        await store.announce(Presence(kind="encoder", replica=replica), ttl_s=ttl_s)
    await kit.elapse(TTL_S * 1.5)
    assert {each.replica for each in await store.present("encoder")} == {"e1", "e3"}


# event log --------------------------------------------------------------------------------------
async def test_seq_from_one_without_holes_per_stream(store):
    kitchen = await running(store)
    yard = await running(store, "yard")
    assert await fill(store, kitchen, 3) == [1, 2, 3]
    assert await fill(store, yard, 2) == [1, 2]
    assert await fill(store, kitchen, 1) == [4]


async def test_concurrent_appends_are_ordered_and_whole(store):
    lease = await running(store)
    bodies = [b'{"n":%d}' % n for n in range(50)]
    got = await asyncio.gather(
        *(store.append("kitchen", lease=lease.token, body=body) for body in bodies)
    )
    assert sorted(got) == list(range(1, 51))
    log = await store.read("kitchen", after_seq=0)
    assert {entry.seq: entry.body for entry in log.entries} == dict(zip(got, bodies, strict=True))


async def test_a_stale_token_writes_nothing(store):
    lease = await running(store)
    await fill(store, lease, 2)
    await store.release_lease(lease)
    for token in (lease.token, "", "nonsense"):
        with pytest.raises(LeaseLost):
            await store.append("kitchen", lease=token, body=b"{}")
    assert (await store.read("kitchen", after_seq=0)).head_seq == 2


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b" {}", b'{"a":1', b"{%s}" % (b" " * 2000)])
async def test_a_body_is_a_json_object_of_bounded_size(kit, body):
    store = await kit.open(StoreConfig(max_body_bytes=1000))
    lease = await running(store)
    with pytest.raises(ValueError, match="event"):
        await store.append("kitchen", lease=lease.token, body=body)
    assert (await store.read("kitchen", after_seq=0)).head_seq == 0


async def test_read_gives_ranges_oldest_first(store):
    lease = await running(store)
    empty = await store.read("kitchen", after_seq=0)
    assert (empty.first_seq, empty.head_seq, empty.entries) == (1, 0, ())
    await fill(store, lease, 10)
    log = await store.read("kitchen", after_seq=3, limit=4)
    assert (log.first_seq, log.head_seq) == (1, 10)
    assert [entry.seq for entry in log.entries] == [4, 5, 6, 7]
    assert log.entries[0].body == b'{"n":3}'
    assert await seqs(store, after_seq=9) == [10]
    assert await seqs(store, after_seq=10) == []
    assert await seqs(store, after_seq=99) == []
    assert (await store.read("kitchen", after_seq=0, limit=0)).head_seq == 10


async def test_log_is_bounded_by_count(kit):
    store = await kit.open(StoreConfig(max_events=5))
    lease = await running(store)
    await fill(store, lease, 12)
    log = await store.read("kitchen", after_seq=0)
    assert (log.first_seq, log.head_seq) == (8, 12)
    assert [entry.seq for entry in log.entries] == [8, 9, 10, 11, 12]


async def test_log_is_bounded_by_age(store, kit):
    lease = await running(store, spec=StreamSpec(source="x", retain_s=TTL_S))
    await fill(store, lease, 2)
    await kit.elapse(TTL_S * 0.6)
    await fill(store, lease, 1)
    assert await seqs(store) == [1, 2, 3]
    await kit.elapse(TTL_S * 0.6)
    log = await store.read("kitchen", after_seq=0)
    assert (log.first_seq, [entry.seq for entry in log.entries]) == (3, [3])
    await kit.elapse(TTL_S)
    log = await store.read("kitchen", after_seq=0)
    assert (log.first_seq, log.head_seq, log.entries) == (4, 3, ())


async def test_seq_goes_on_after_delete_and_create(store):
    lease = await running(store)
    await fill(store, lease, 3)
    await store.delete_stream("kitchen")
    lease = await running(store, spec=OTHER)
    assert await fill(store, lease, 1) == [4]
    assert await seqs(store) == [1, 2, 3, 4]


async def test_deleted_log_stays_readable_until_it_ages_out(store, kit):
    lease = await running(store, spec=StreamSpec(source="x", retain_s=TTL_S))
    await fill(store, lease, 3)
    await store.delete_stream("kitchen")
    assert await seqs(store) == [1, 2, 3]
    assert await store.wait("kitchen", after_seq=0, timeout_s=0) == 3
    await kit.elapse(TTL_S * 1.5)
    assert await seqs(store) == []


async def test_epoch_is_one_life_of_the_log(kit, store):
    await running(store)
    epoch = await store.epoch()
    assert epoch == await store.epoch() == (await store.read("kitchen", after_seq=0)).epoch
    assert 1 <= len(epoch) <= 32
    assert epoch.isalnum()
    await store.create_stream("yard", SPEC)
    assert await store.epoch() == epoch
    assert await (await kit.open(StoreConfig())).epoch() != epoch


async def test_wait_returns_at_once_when_there_is_something(store):
    lease = await running(store)
    await fill(store, lease, 3)
    assert await store.wait("kitchen", after_seq=2, timeout_s=SOON_S) == 3


async def test_wait_wakes_up_for_each_append_of_its_stream(store):
    lease = await running(store)
    yard = await running(store, "yard")
    waiting = [
        asyncio.create_task(store.wait("kitchen", after_seq=1, timeout_s=SOON_S)) for _ in range(3)
    ]
    await asyncio.sleep(0)
    await fill(store, yard, 5)
    await fill(store, lease, 1)
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    await fill(store, lease, 1)
    async with asyncio.timeout(SOON_S / 2):
        assert await asyncio.gather(*waiting) == [2, 2, 2]


async def test_wait_returns_the_head_at_the_timeout(store):
    lease = await running(store)
    await fill(store, lease, 2)
    assert await store.wait("kitchen", after_seq=2, timeout_s=0.01) == 2
    assert await store.wait("kitchen", after_seq=7, timeout_s=0.01) == 2


async def test_cancelling_a_wait_disturbs_nobody(store):
    lease = await running(store)
    gone = asyncio.create_task(store.wait("kitchen", after_seq=0, timeout_s=SOON_S))
    stays = asyncio.create_task(store.wait("kitchen", after_seq=0, timeout_s=SOON_S))
    await asyncio.sleep(0)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    await fill(store, lease, 1)
    async with asyncio.timeout(SOON_S / 2):
        assert await stays == 1


async def test_answers_can_be_carried_between_processes(store):
    lease = await running(store)
    await fill(store, lease, 2)
    for answer in (
        lease,
        await store.read("kitchen", after_seq=0),
        await store.get_stream("kitchen"),
    ):
        assert pickle.loads(pickle.dumps(answer)) == answer
