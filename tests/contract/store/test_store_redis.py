"""What is particular to the store in Redis, against a real server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import redis
from redis_server import RedisServer, certificate, free_port, running_redis

from streamer.errors import CapacityError, ConfigError, LeaseLost, StreamerError
from streamer.records import StreamSpec
from streamer.store.config import StoreConfig
from streamer.store.open import check_store, opened_store
from streamer.store.protocol import StoredPicture
from streamer.store.redis import RedisStore

pytestmark = pytest.mark.contract

SPEC = StreamSpec(source="synthetic:bounce?seed=1")
SECRET = "hunter2"
PICTURE = StoredPicture(captured_at_ns=1, media_type="image/png", body=b"png")
SOON_S = 5.0


@pytest.fixture
def server(redis_server: RedisServer) -> RedisServer:
    redis_server.command("FLUSHALL")
    return redis_server


@asynccontextmanager
async def at(server: RedisServer, **values: object) -> AsyncIterator[RedisStore]:
    store = RedisStore(StoreConfig(url=server.url, **values))  # type: ignore[arg-type]
    try:
        yield store
    finally:
        await store.close()


async def running(store, stream="kitchen", spec=SPEC):
    await store.create_stream(stream, spec)
    return await store.acquire_lease(stream, owner="here", ttl_s=60)


async def fill(store, lease, count):
    return [await store.append(lease.stream, lease=lease.token, body=b"{}") for _ in range(count)]


# several processes ------------------------------------------------------------------------------
async def test_processes_share_what_is_in_it_and_wake_each_other(server):
    async with at(server) as one, at(server) as other:
        seen = await other.wait_registry(seen=-1, timeout_s=SOON_S)
        registry = asyncio.create_task(other.wait_registry(seen=seen, timeout_s=SOON_S))
        lease = await running(one)
        assert await registry != seen
        log = asyncio.create_task(other.wait("kitchen", after_seq=0, timeout_s=SOON_S))
        assert await fill(one, lease, 1) == [1]
        assert await log == 1
        assert await other.epoch() == await one.epoch()
        assert await other.append("kitchen", lease=lease.token, body=b"{}") == 2


async def test_prefixes_keep_services_apart(server):
    async with at(server) as one, at(server, prefix="lab:2") as other:
        await running(one)
        assert await other.list_streams() == []
        assert await other.epoch() != await one.epoch()


async def test_hundreds_wait_over_one_connection(server):
    async with at(server, max_connections=4) as store:
        leases = [await running(store, f"s{n}") for n in range(100)]
        waiting = [
            asyncio.create_task(store.wait(lease.stream, after_seq=0, timeout_s=SOON_S))
            for lease in leases
        ]
        await asyncio.sleep(0)
        for lease in leases:
            await fill(store, lease, 1)
        assert await asyncio.gather(*waiting) == [1] * 100
        assert len(server.command("CLIENT", "LIST", "TYPE", "pubsub").splitlines()) == 1


async def test_a_wait_outlives_the_connection_that_brings_the_news(server):
    async with at(server) as store, at(server) as other:
        lease = await running(store)
        waiting = asyncio.create_task(store.wait("kitchen", after_seq=1, timeout_s=SOON_S))
        await fill(other, lease, 1)
        server.command("CLIENT", "KILL", "TYPE", "pubsub")
        await fill(other, lease, 1)
        async with asyncio.timeout(SOON_S / 2):
            assert await waiting == 2


async def test_waiting_asks_nothing_while_nothing_happens(server):
    async with at(server) as store:
        await running(store)
        await store.wait("kitchen", after_seq=0, timeout_s=0.05)
        before = server.command("INFO", "commandstats")["cmdstat_evalsha"]["calls"]
        await store.wait("kitchen", after_seq=0, timeout_s=0.5)
        after = server.command("INFO", "commandstats")["cmdstat_evalsha"]["calls"]
        assert after - before == 2  # at the begin and at the end


async def test_a_cancelled_call_does_not_give_its_answer_to_another(server):
    rng = random.Random(1)
    async with at(server, max_connections=3) as store:
        leases = [await running(store, f"s{n}") for n in range(4)]
        for n, lease in enumerate(leases):
            await fill(store, lease, n + 1)

        async def ask(n: int) -> None:
            assert (await store.read(f"s{n}", after_seq=0)).head_seq == n + 1

        for _ in range(60):
            tasks = [asyncio.create_task(ask(n)) for n in range(4)]
            await asyncio.sleep(rng.uniform(0, 0.002))
            victim = rng.randrange(4)
            was_done = tasks[victim].done()
            tasks[victim].cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            cancelled = outcomes.pop(victim)
            assert isinstance(cancelled, asyncio.CancelledError) or was_done
            assert outcomes == [None] * 3


async def test_a_server_that_forgot_the_scripts_learns_them_again(server):
    async with at(server) as store:
        lease = await running(store)
        server.command("SCRIPT", "FLUSH")
        assert await fill(store, lease, 2) == [1, 2]


# what is kept -----------------------------------------------------------------------------------
async def test_a_silent_log_frees_its_memory_by_itself(server):
    async with at(server) as store:
        lease = await running(store, spec=StreamSpec(source="x", retain_s=0.2))
        await fill(store, lease, 3)
        await asyncio.sleep(0.3)
        assert server.command("EXISTS", "streamer:{kitchen}:events") == 0
        assert await fill(store, lease, 1) == [4]


async def test_old_events_go_when_new_ones_come(server):
    async with at(server) as store:
        lease = await running(store, spec=StreamSpec(source="x", retain_s=0.4))
        await fill(store, lease, 30)
        await asyncio.sleep(0.25)
        await fill(store, lease, 5)
        await asyncio.sleep(0.25)
        await fill(store, lease, 1)
        assert server.command("XLEN", "streamer:{kitchen}:events") == 6
        log = await store.read("kitchen", after_seq=0)
        assert (log.first_seq, log.head_seq, len(log.entries)) == (31, 36, 6)


async def test_deleted_streams_are_bounded_and_numbers_never_come_twice(server):
    async with at(server, max_deleted=2, max_deleted_logs=1) as store:
        for n, stream in enumerate("abc"):
            await fill(store, await running(store, stream), 3 - n)
            await store.delete_stream(stream)
        keys = {key.decode() for key in server.command("KEYS", "*{*")}
        assert keys == {"streamer:{b}:head", "streamer:{c}:head", "streamer:{c}:events"}
        assert await fill(store, await running(store, "b"), 1) == [3]
        assert await fill(store, await running(store, "a"), 1) == [4]
        assert await fill(store, await running(store, "new"), 1) == [4]


async def test_a_longer_retention_holds_for_what_is_still_there(server):
    async with at(server) as store:
        lease = await running(store, spec=StreamSpec(source="x", retain_s=0.3))
        await fill(store, lease, 1)
        await store.delete_stream("kitchen")
        await running(store)
        await asyncio.sleep(0.4)
        assert (await store.read("kitchen", after_seq=0)).first_seq == 1


@pytest.mark.parametrize("ask", ["read", "append"])
async def test_a_log_that_went_backwards_begins_a_new_epoch(server, ask):
    async with at(server) as store, at(server) as stranger:
        lease = await running(store)
        await fill(store, lease, 2)
        kept = {key: server.command("DUMP", key) for key in server.command("KEYS", "*")}
        await fill(store, lease, 1)
        epoch = await store.epoch()
        for key, value in kept.items():
            server.command("RESTORE", key, "0", value, "REPLACE")
        assert (await stranger.read("kitchen", after_seq=0)).epoch == epoch
        if ask == "append":
            assert await fill(store, lease, 1) == [3]
        log = await store.read("kitchen", after_seq=0)
        assert log.epoch != epoch
        assert log.epoch == await stranger.epoch()
        assert [e.seq for e in log.entries] == ([1, 2, 3] if ask == "append" else [1, 2])
        assert (await store.read("kitchen", after_seq=0)).epoch == log.epoch


async def test_a_server_that_lost_everything_changes_its_epoch_once(server):
    async with at(server) as store, at(server) as stranger:
        await fill(store, await running(store), 5)
        epoch = await store.epoch()
        server.command("FLUSHALL")
        await fill(stranger, await running(stranger), 1)
        log = await store.read("kitchen", after_seq=5)
        assert (log.first_seq, log.head_seq) == (1, 1)
        assert log.epoch == await stranger.epoch() != epoch
        assert (await stranger.read("kitchen", after_seq=0)).epoch == log.epoch


async def test_pictures_leave_nothing_behind(server):
    async with at(server, max_pictures=3) as store:
        lease = await running(store)
        for n in range(1, 6):
            picture = replace(PICTURE, captured_at_ns=n)
            for kind in ("snapshot", "latent"):
                await store.put_picture(
                    "kitchen", lease=lease.token, kind=kind, picture=picture, ttl_s=60
                )
        assert server.command("ZCARD", "streamer:{kitchen}:latent:index") == 3
        assert server.command("HLEN", "streamer:{kitchen}:latent:bodies") == 3
        for kind in ("snapshot", "latent"):
            for name in ("index", "bodies"):
                assert 0 < server.command("PTTL", f"streamer:{{kitchen}}:{kind}:{name}") <= 60_000
        await store.delete_stream("kitchen")
        assert server.command("KEYS", "streamer:{kitchen}:*") == [b"streamer:{kitchen}:head"]


async def test_fewer_pictures_are_kept_once_the_bound_is_lower(server):
    async with at(server) as store, at(server, max_pictures=2) as lower:
        lease = await running(store)
        for n in range(1, 8):
            picture = replace(PICTURE, captured_at_ns=n)
            where = store if n < 7 else lower
            await where.put_picture(
                "kitchen", lease=lease.token, kind="latent", picture=picture, ttl_s=60
            )
        assert server.command("HKEYS", "streamer:{kitchen}:latent:bodies") == [b"6", b"7"]


async def test_times_do_not_fall_when_the_clock_of_the_server_does(server):
    async with at(server) as store:
        lease = await running(store)
        later_ms = server.command("TIME")[0] * 1000 + 60_000
        server.command("HSET", "streamer:{kitchen}:head", "time_ms", str(later_ms))
        await fill(store, lease, 1)
        (event,) = server.command("XRANGE", "streamer:{kitchen}:events", "-", "+")
        assert event[1][b"t"] == b"%d" % later_ms


# a server that will not do ----------------------------------------------------------------------
@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"maxmemory-policy": "allkeys-lru"}, "CONFIG SET maxmemory-policy noeviction"),
        ({"appendonly": "no"}, "CONFIG SET appendonly yes"),
    ],
)
async def test_an_unfit_server_is_refused_with_the_way_out(config, sentence):
    with running_redis(**config) as unfit, pytest.raises(ConfigError, match=sentence):
        await check_store(StoreConfig(url=unfit.url))


async def test_a_cluster_is_refused():
    ports = {"cluster-enabled": "yes", "cluster-port": str(free_port())}
    with running_redis(**ports) as unfit, pytest.raises(ConfigError, match="without cluster mode"):
        await check_store(StoreConfig(url=unfit.url))


async def test_the_way_out_works():
    with running_redis(appendonly="no", maxmemory_policy="volatile-ttl") as server:
        server.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
        await check_store(StoreConfig(url=server.url, require_aof=False))
        server.command("CONFIG", "SET", "appendonly", "yes")
        await check_store(StoreConfig(url=server.url))


async def test_the_wrong_password_is_a_setting_and_not_shown():
    with running_redis(requirepass="right") as server:
        place = server.url.removeprefix("redis://")
        for config in (
            StoreConfig(url=f"redis://:{SECRET}@{place}"),
            StoreConfig(url=server.url, password=SECRET),
            StoreConfig(url=server.url),
        ):
            with pytest.raises(ConfigError, match=r"store\.password") as caught:
                await check_store(config)
            assert SECRET not in str(caught.value)
        await check_store(StoreConfig(url=f"redis://:right@{place}"))
        await check_store(StoreConfig(url=server.url, password="right"))


async def test_a_password_set_later_is_an_outage_that_ends():
    """Whoever runs must not end, or give a stream up, for what an operator can take back."""
    with running_redis() as server:
        async with at(server) as store:
            lease = await running(store)
            server.command("CONFIG", "SET", "requirepass", "new")
            with redis.Redis(port=server.port, password="new") as operator:
                operator.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
                for _ in range(3):
                    with pytest.raises(CapacityError):
                        await fill(store, lease, 1)
                with pytest.raises(CapacityError, match=r"store\.password"):
                    await store.list_streams()
                operator.config_set("requirepass", "")
            await fill(store, lease, 1)
            assert [record.stream for record in await store.list_streams()] == [lease.stream]


async def test_a_user_with_rules_needs_keys_and_channels(caplog):
    with running_redis() as server:
        place = server.url.removeprefix("redis://")
        rules = ["on", ">pw", "+@all", "-@dangerous", "-@admin"]
        config = StoreConfig(url=f"redis://app:pw@{place}")
        for more in ([], ["~streamer:*"], ["&streamer:*"]):
            server.command("ACL", "SETUSER", "app", "reset", *rules, *more)
            with pytest.raises(ConfigError, match="may do"):
                await check_store(config)
        server.command("ACL", "SETUSER", "app", "reset", *rules, "~streamer:*", "&streamer:*")
        with caplog.at_level(logging.WARNING):
            await check_store(config)
        assert "noeviction" in caplog.text  # INFO is not allowed: it cannot be checked
        caplog.clear()
        server.command("ACL", "SETUSER", "app", "+info")
        async with opened_store(config) as store:
            assert caplog.text == ""
            await fill(store, await running(store), 1)
            assert await store.wait("kitchen", after_seq=0, timeout_s=0.1) == 1


async def test_tls_is_spoken_and_certificates_are_checked(tmp_path):
    port = free_port()
    url = f"rediss://localhost:{port}/0"
    with running_redis(**certificate(tmp_path), **{"tls-port": str(port)}):
        await check_store(StoreConfig(url=f"{url}?ssl_ca_certs={tmp_path}/cert.pem"))
        with pytest.raises(CapacityError, match="CERTIFICATE_VERIFY_FAILED"):
            await check_store(StoreConfig(url=url, start_s=0))
        with pytest.raises(CapacityError, match="No such file"):
            await check_store(StoreConfig(url=f"{url}?ssl_ca_certs=/no/such", start_s=0))


async def test_nobody_there_is_said_without_secrets():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        config = StoreConfig(url=f"redis://u:{SECRET}@127.0.0.1:{port}/2", start_s=0.3)
        with pytest.raises(CapacityError, match=f"redis://127.0.0.1:{port}/2") as caught:
            await check_store(config)
    assert SECRET not in str(caught.value)


async def test_a_server_that_comes_late_is_waited_for(server, tmp_path):
    late = RedisServer(tmp_path)
    starting = threading.Timer(0.3, late.start)
    starting.start()
    try:
        await check_store(StoreConfig(url=late.url, start_s=20))
    finally:
        starting.join()
        late.stop()


async def test_what_is_no_redis_is_out_of_reach():
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as web:
        port = web.sockets[0].getsockname()[1]
        with pytest.raises(CapacityError, match="out of reach"):
            await check_store(StoreConfig(url=f"redis://127.0.0.1:{port}", start_s=0))


# a server in trouble ----------------------------------------------------------------------------
async def test_out_of_memory_refuses_writes_and_heals():
    with running_redis() as server:
        async with at(server) as store:
            lease = await running(store)
            await fill(store, lease, 3)
            server.command("CONFIG", "SET", "maxmemory", "1")
            for call in (
                store.append("kitchen", lease=lease.token, body=b"{}"),
                store.create_stream("yard", SPEC),
                store.put_status("kitchen", {}, lease=lease.token, ttl_s=1),
                store.change_stream("kitchen", replace(SPEC, retain_s=5.0)),
                store.put_picture(
                    "kitchen", lease=lease.token, kind="latent", picture=PICTURE, ttl_s=1
                ),
            ):
                with pytest.raises(CapacityError, match="maxmemory"):
                    await call
            await store.renew_lease(lease, ttl_s=60)
            assert (await store.read("kitchen", after_seq=0)).head_seq == 3
            assert len(await store.list_streams()) == 1
            server.command("CONFIG", "SET", "maxmemory", "0")
            assert await fill(store, lease, 1) == [4]


async def test_out_of_memory_a_full_log_goes_on_and_streams_can_be_deleted():
    with running_redis() as server:
        async with at(server, max_events=3, max_pictures=3) as store:
            lease = await running(store)
            await fill(store, lease, 3)
            for number in range(1, 4):
                picture = replace(PICTURE, captured_at_ns=number)
                await store.put_picture(
                    "kitchen", lease=lease.token, kind="latent", picture=picture, ttl_s=60
                )
            server.command("CONFIG", "SET", "maxmemory", "1")
            assert await fill(store, lease, 2) == [4, 5]
            for number in (4, 5):
                picture = replace(PICTURE, captured_at_ns=number)
                await store.put_picture(
                    "kitchen", lease=lease.token, kind="latent", picture=picture, ttl_s=60
                )
                assert await store.get_picture("kitchen", "latent") == picture
            await store.delete_stream("kitchen")
            assert await store.list_streams() == []


async def test_a_replica_is_no_place_to_write(server):
    with running_redis() as replica:
        replica.command("REPLICAOF", "127.0.0.1", str(server.port))
        async with at(replica) as store:
            with contextlib.suppress(CapacityError):  # while it loads
                await store.list_streams()
            with pytest.raises(StreamerError) as caught:
                await store.create_stream("kitchen", SPEC)
        assert isinstance(caught.value, CapacityError)


async def test_keys_of_somebody_else_are_said():
    with running_redis() as server:
        server.command("SET", "streamer:registry", "mine")
        async with at(server) as store:
            with pytest.raises(CapacityError, match=r"store\.prefix"):
                await store.create_stream("kitchen", SPEC)


async def test_a_lost_answer_is_not_asked_for_again(server):
    """An append whose answer came too late was written once."""
    async with at(server, timeout_s=0.2) as store:
        lease = await running(store)
        await fill(store, lease, 1)
        server.freeze()
        try:
            with pytest.raises(CapacityError, match="out of reach"):
                await fill(store, lease, 1)
        finally:
            server.resume()
        assert (await fill(store, lease, 1))[0] in (2, 3)
        with pytest.raises(LeaseLost):
            await store.append("kitchen", lease="stale", body=b"{}")
