"""What `streamer.store.protocol` promises, sentence by sentence, for every implementation."""

from __future__ import annotations

import asyncio
import pickle
from dataclasses import replace

import pytest

from streamer.errors import CapacityError, Conflict, LeaseLost, NotFound
from streamer.records import ModelInfo, StreamSpec
from streamer.store.config import StoreConfig
from streamer.store.protocol import Presence, StoredPicture

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


async def test_change_replaces_the_spec_and_nothing_else(store):
    record, _ = await store.create_stream("kitchen", SPEC)
    await store.set_desired("kitchen", "paused")
    changed = await store.change_stream("kitchen", OTHER)
    assert changed == replace(record, spec=OTHER, desired="paused", revision=3)
    assert await store.get_stream("kitchen") == changed
    assert await store.list_streams() == [changed]
    assert await store.create_stream("kitchen", OTHER) == (changed, False)
    with pytest.raises(Conflict):
        await store.create_stream("kitchen", SPEC)


async def test_change_that_changes_nothing_is_none(store):
    record, _ = await store.create_stream("kitchen", SPEC)
    seen = await store.wait_registry(seen=-1, timeout_s=SOON_S)
    assert await store.change_stream("kitchen", SPEC) == record
    assert await store.wait_registry(seen=seen, timeout_s=0) == seen


@pytest.mark.parametrize("spec", [SPEC, OTHER])
async def test_change_clears_the_outcome(store, spec):
    lease = await running(store)
    await store.finish_stream("kitchen", lease=lease.token, outcome="failed")
    changed = await store.change_stream("kitchen", spec)
    assert (changed.spec, changed.outcome, changed.revision) == (spec, "", 3)


async def test_change_leaves_the_lease_and_the_log(store):
    lease = await running(store)
    await fill(store, lease, 2)
    await store.change_stream("kitchen", OTHER)
    assert await fill(store, lease, 1) == [3]
    assert await seqs(store) == [1, 2, 3]


async def test_change_of_one_revision_conflicts_with_another(store):
    await store.create_stream("kitchen", SPEC)
    first = await store.change_stream("kitchen", OTHER, if_revision=1)
    with pytest.raises(Conflict, match="revision 2, not 1"):
        await store.change_stream("kitchen", SPEC, if_revision=1)
    assert await store.get_stream("kitchen") == first
    assert (await store.change_stream("kitchen", SPEC, if_revision=2)).revision == 3


async def test_racing_changes_are_whole_and_each_is_one_revision(store):
    record, _ = await store.create_stream("kitchen", SPEC)
    specs = [StreamSpec(source=f"synthetic:bounce?seed={n}", retain_s=100.0 + n) for n in range(8)]
    changed = await asyncio.gather(*(store.change_stream("kitchen", spec) for spec in specs))
    assert sorted(each.revision for each in changed) == list(range(2, 10))
    last = max(changed, key=lambda each: each.revision)
    assert await store.get_stream("kitchen") == last
    assert all(
        each == replace(record, spec=spec, revision=each.revision)
        for each, spec in zip(changed, specs, strict=True)
    )


async def test_of_racing_changes_of_one_revision_one_wins(store):
    await store.create_stream("kitchen", SPEC)
    answers = await asyncio.gather(
        *(
            store.change_stream("kitchen", StreamSpec(source=f"synthetic:{n}"), if_revision=1)
            for n in range(8)
        ),
        return_exceptions=True,
    )
    won = [answer for answer in answers if not isinstance(answer, Conflict)]
    assert [await store.get_stream("kitchen")] == won


async def test_changed_retention_holds_for_what_is_there(store, kit):
    lease = await running(store, spec=StreamSpec(source="x", retain_s=TTL_S))
    await fill(store, lease, 1)
    await store.change_stream("kitchen", StreamSpec(source="x", retain_s=60))
    await kit.elapse(TTL_S * 1.5)
    assert await seqs(store) == [1]
    await store.change_stream("kitchen", StreamSpec(source="x", retain_s=TTL_S))
    assert await seqs(store) == []


async def test_finish_sets_outcome_and_desired_clears_it(store):
    lease = await running(store)
    await store.finish_stream("kitchen", lease=lease.token, outcome="ended")
    finished = await store.get_stream("kitchen")
    assert (finished.outcome, finished.revision) == ("ended", 2)
    again = await store.set_desired("kitchen", "live")
    assert (again.outcome, again.revision) == ("", 3)


async def test_finish_can_be_meant_for_one_revision(store):
    lease = await running(store)
    await store.set_desired("kitchen", "paused")
    for revision in (1, 3):
        with pytest.raises(Conflict):
            await store.finish_stream(
                "kitchen", lease=lease.token, outcome="failed", if_revision=revision
            )
    assert (await store.get_stream("kitchen")).outcome == ""
    await store.finish_stream("kitchen", lease=lease.token, outcome="failed", if_revision=2)
    assert (await store.get_stream("kitchen")).outcome == "failed"


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
        store.change_stream("x", SPEC),
        store.get_picture("x", "snapshot"),
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
        store.change_stream("kitchen", OTHER),
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
    token = (await running(store)).token
    assert await store.get_status("kitchen") is None
    status = {"state": "live", "fps": 14.9, "drops": {"overflow": 2}}
    await store.put_status("kitchen", {"state": "starting"}, lease=token, ttl_s=60)
    await store.put_status("kitchen", status, lease=token, ttl_s=TTL_S)
    status["drops"]["overflow"] = 3
    assert await store.get_status("kitchen") == {
        "state": "live",
        "fps": 14.9,
        "drops": {"overflow": 2},
    }
    await kit.elapse(TTL_S * 1.5)
    assert await store.get_status("kitchen") is None


async def test_deleted_stream_has_no_status(store):
    lease = await running(store)
    await store.put_status("kitchen", {"state": "live"}, lease=lease.token, ttl_s=60)
    await store.delete_stream("kitchen")
    assert await store.get_status("kitchen") is None


async def test_a_zombie_does_not_overwrite_the_status_of_the_new_session(store, kit):
    old = await running(store, ttl_s=TTL_S)
    await kit.elapse(TTL_S * 1.5)
    new = await store.acquire_lease("kitchen", owner="there", ttl_s=60)
    await store.put_status("kitchen", {"owner": "there"}, lease=new.token, ttl_s=60)
    for token in (old.token, "", "nonsense"):
        with pytest.raises(LeaseLost):
            await store.put_status("kitchen", {"owner": "here"}, lease=token, ttl_s=60)
    assert await store.get_status("kitchen") == {"owner": "there"}


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


# pictures ---------------------------------------------------------------------------------------
def picture(at_ns, body=b"\xff\xd8\x00 jpeg\xff"):
    return StoredPicture(captured_at_ns=at_ns, media_type="image/jpeg", body=body)


async def put(store, lease, shown, *, kind="snapshot", ttl_s=60.0):
    await store.put_picture(lease.stream, lease=lease.token, kind=kind, picture=shown, ttl_s=ttl_s)


AT = 1_764_576_003_412_345_678


async def test_pictures_come_back_as_they_were_by_kind(store):
    lease = await running(store)
    snapshot = picture(AT, bytes(range(256)))
    latent = StoredPicture(captured_at_ns=AT + 1, media_type="image/png", body=b"\x89PNG\r\n\x00")
    await put(store, lease, snapshot)
    await put(store, lease, latent, kind="latent")
    assert await store.get_picture("kitchen", "snapshot") == snapshot
    assert await store.get_picture("kitchen", "latent") == latent


async def test_a_picture_is_found_by_time_to_the_nanosecond(store):
    lease = await running(store)
    shown = [picture(AT + n, b"%d" % n) for n in (0, 1, 300)]
    for each in shown:
        await put(store, lease, each)
    for at_ns, found in ((0, 0), (1, 1), (299, 1), (300, 2), (10**12, 2)):
        got = await store.get_picture("kitchen", "snapshot", at_ns=AT + at_ns)
        assert got == shown[found]
    assert await store.get_picture("kitchen", "snapshot", at_ns=10**21) == shown[2]
    for too_early in (AT - 1, 0, -1):
        with pytest.raises(NotFound, match=r"there are 3, from 2025-12-01T08:00:03.412345Z"):
            await store.get_picture("kitchen", "snapshot", at_ns=too_early)


async def test_the_newest_picture_is_the_one_put_last(store):
    """The clock of a camera may fall, and a file that is read again begins anew."""
    lease = await running(store)
    shown = [picture(at_ns) for at_ns in (0, 10, 3, 3)]
    shown[3] = picture(3, b"again")
    for each in shown:
        await put(store, lease, each)
    assert await store.get_picture("kitchen", "snapshot") == shown[3]
    assert await store.get_picture("kitchen", "snapshot", at_ns=9) == shown[3]
    assert await store.get_picture("kitchen", "snapshot", at_ns=99) == shown[1]
    assert await store.get_picture("kitchen", "snapshot", at_ns=0) == shown[0]


async def test_pictures_are_bounded_by_count_per_stream_and_kind(kit):
    store = await kit.open(StoreConfig(max_pictures=3))
    lease, yard = await running(store), await running(store, "yard")
    await put(store, yard, picture(1))
    await put(store, lease, picture(1), kind="latent")
    for n in range(1, 6):
        await put(store, lease, picture(AT + n))
    with pytest.raises(NotFound, match="there are 3"):
        await store.get_picture("kitchen", "snapshot", at_ns=AT + 2)
    assert await store.get_picture("kitchen", "snapshot", at_ns=AT + 3) == picture(AT + 3)
    assert await store.get_picture("yard", "snapshot") == picture(1)
    assert await store.get_picture("kitchen", "latent") == picture(1)


async def test_each_picture_has_its_own_age(store, kit):
    lease = await running(store)
    await put(store, lease, picture(1), ttl_s=60)
    await put(store, lease, picture(2), ttl_s=TTL_S)
    await put(store, lease, picture(3), ttl_s=TTL_S * 2)
    await kit.elapse(TTL_S * 1.3)
    assert await store.get_picture("kitchen", "snapshot") == picture(3)
    assert await store.get_picture("kitchen", "snapshot", at_ns=2) == picture(1)
    await kit.elapse(TTL_S)
    assert await store.get_picture("kitchen", "snapshot") == picture(1)
    await put(store, lease, picture(4), ttl_s=TTL_S)
    assert await store.get_picture("kitchen", "snapshot", at_ns=3) == picture(1)


async def test_pictures_of_a_silent_stream_go(store, kit):
    lease = await running(store)
    with pytest.raises(NotFound, match="No snapshot of stream 'kitchen' is retained"):
        await store.get_picture("kitchen", "snapshot")
    await put(store, lease, picture(1), ttl_s=TTL_S)
    await kit.elapse(TTL_S * 1.5)
    for at_ns in (None, AT):
        with pytest.raises(NotFound, match="No snapshot of stream 'kitchen' is retained"):
            await store.get_picture("kitchen", "snapshot", at_ns=at_ns)


async def test_pictures_go_with_their_stream(store):
    lease = await running(store)
    await put(store, lease, picture(1))
    await put(store, lease, picture(1), kind="latent")
    await store.delete_stream("kitchen")
    with pytest.raises(NotFound):
        await store.get_picture("kitchen", "snapshot")
    await store.create_stream("kitchen", SPEC)
    for kind in ("snapshot", "latent"):
        with pytest.raises(NotFound, match="retained"):
            await store.get_picture("kitchen", kind)


async def test_a_picture_needs_the_lease(store):
    lease = await running(store)
    await put(store, lease, picture(1))
    await store.release_lease(lease)
    for stale in (lease, replace(lease, token=""), replace(lease, stream="unknown")):
        with pytest.raises(LeaseLost):
            await put(store, stale, picture(2))
    assert await store.get_picture("kitchen", "snapshot") == picture(1)


@pytest.mark.parametrize(
    "wrong",
    [
        picture(1, b""),
        picture(1, b"x" * 1001),
        picture(-1),
        StoredPicture(captured_at_ns=1, media_type="text/html", body=b"x"),
        StoredPicture(captured_at_ns=1, media_type="image/x y\nz", body=b"x"),
    ],
    ids=["empty", "large", "before 1970", "no image", "no type"],
)
async def test_what_is_no_picture_is_refused(kit, wrong):
    store = await kit.open(StoreConfig(max_picture_bytes=1000))
    lease = await running(store)
    with pytest.raises(ValueError, match="picture"):
        await put(store, lease, wrong)
    await put(store, lease, picture(1, b"x" * 1000))


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
        picture(AT),
    ):
        assert pickle.loads(pickle.dumps(answer)) == answer
