"""The parts of the Redis store that need no server."""

from __future__ import annotations

import pytest
from redis import exceptions as theirs

from streamer.errors import CapacityError, ConfigError
from streamer.records import ModelInfo, Sampling, StreamRecord, StreamSpec
from streamer.store.config import StoreConfig
from streamer.store.memory import MemoryStore
from streamer.store.open import open_store
from streamer.store.protocol import Presence
from streamer.store.redis import RedisStore
from streamer.store.redis_address import shown_address
from streamer.store.redis_errors import StoreRefused, translated
from streamer.store.redis_life import Life, SeenLife
from streamer.store.redis_records import dump_presence, dump_record, load_presence, load_record

pytestmark = pytest.mark.unit

SECRET = "hunter2"


# addresses and settings -------------------------------------------------------------------------
@pytest.mark.parametrize(
    "url",
    [
        "redis://valkey",
        "redis://valkey:6380/3",
        "redis://:secret@valkey:6379/0",
        "redis://user:s%40cret@[::1]:6379",
        "rediss://valkey/0?ssl_ca_certs=/etc/ca.pem",
        "unix:///run/redis.sock?db=1",
    ],
)
def test_addresses_that_work(url):
    assert StoreConfig(url=url).url == url


@pytest.mark.parametrize(
    ("url", "part"),
    [
        (f"http://user:{SECRET}@valkey", "scheme 'http'"),
        (f"user:{SECRET}@valkey", "looks like redis://"),
        (f"redis://user:{SECRET}@", "looks like redis://"),
        (f"redis://:{SECRET}@valkey:0", "looks like redis://"),
        (f"redis://:{SECRET}@valkey:port", "looks like redis://"),
        (f"redis://:{SECRET}@valkey/streams", "must be a number"),
        (f"redis://:{SECRET}@valkey?retry=3", "the option 'retry'"),
        (f"redis://:{SECRET}@valkey?ssl_cert_reqs=none", "needs the scheme rediss"),
        ("unix://", "looks like redis://"),
    ],
)
def test_addresses_that_cannot_work_are_explained_without_secrets(url, part):
    with pytest.raises(ConfigError, match=part) as caught:
        StoreConfig(url=url)
    assert SECRET not in str(caught.value)


def test_no_secret_is_shown():
    url = f"rediss://user:{SECRET}@valkey:6379/1?ssl_keyfile=/{SECRET}"
    config = StoreConfig(url=url, password=SECRET)
    assert shown_address(url) == "rediss://valkey:6379/1"
    assert SECRET not in repr(config)
    assert SECRET not in str(RedisStore(config).connection.place)


@pytest.mark.parametrize(
    "values",
    [
        {"prefix": ""},
        {"prefix": "a{b}"},
        {"timeout_s": 0},
        {"start_s": -1},
        {"max_connections": 0},
        {"max_streams": 0},
    ],
)
def test_settings_that_cannot_work_are_refused(values):
    with pytest.raises(ConfigError, match=r"store\."):
        StoreConfig(**values)


def test_the_settings_name_the_store():
    assert isinstance(open_store(StoreConfig()), MemoryStore)
    assert isinstance(open_store(StoreConfig(url="redis://nowhere")), RedisStore)


# errors -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("error", "kind", "part"),
    [
        (theirs.ConnectionError("Connection refused."), CapacityError, "Connection refused"),
        (theirs.TimeoutError("Timeout reading"), CapacityError, "out of reach"),
        (TimeoutError(), CapacityError, "no answer in time"),
        (ConnectionResetError("reset"), CapacityError, "out of reach"),
        (theirs.InvalidResponse("Protocol Error: b'HTTP'"), CapacityError, "out of reach"),
        (theirs.BusyLoadingError("Redis is loading"), CapacityError, "reading its data"),
        (theirs.OutOfMemoryError("no", status_code="OOM"), CapacityError, "maxmemory"),
        (
            theirs.ResponseError("Error running script: @user_script: 12: -OOM command not"),
            CapacityError,
            "maxmemory",
        ),
        (theirs.ReadOnlyError("no", status_code="READONLY"), CapacityError, "read-only"),
        (theirs.ResponseError("MISCONF Redis is configured"), CapacityError, "disk"),
        (theirs.AuthenticationError("invalid password"), StoreRefused, "store.password"),
        (theirs.NoPermissionError("no", status_code="NOPERM"), StoreRefused, "may do"),
        (
            theirs.ResponseError("Protocol error: unauthenticated multibulk length"),
            StoreRefused,
            "store.password",
        ),
        (theirs.ResponseError("WRONGTYPE Operation"), StoreRefused, "store.prefix"),
    ],
)
def test_errors_are_translated(error, kind, part):
    with pytest.raises(kind, match=part) as caught, translated("redis://valkey"):
        raise error
    assert caught.value.__cause__ is error
    assert caught.value.code == "store_unavailable"
    assert "redis://valkey" in str(caught.value)


def test_what_is_a_bug_of_ours_stays_what_it_is():
    with pytest.raises(theirs.ResponseError, match="unknown command"), translated("here"):
        raise theirs.ResponseError("unknown command 'XADDD'")


# records ----------------------------------------------------------------------------------------
def test_records_come_back_as_they_were():
    record = StreamRecord(
        stream="kitchen",
        spec=StreamSpec(
            source="rtsp://u:p@cam/1",
            model="tiny",
            mode="gap",
            horizons_s=(1.0, 0.1),
            sampling=Sampling(frames=16, fps=7.5, stride_s=0.4),
            retain_s=12.5,
        ),
        desired="paused",
        outcome="failed",
        revision=12,
        created_ns=1_764_576_003_412_345_678,
    )
    registered, wanted = dump_record(record)
    assert load_record("kitchen", registered, wanted.encode()) == record


def test_fields_of_newer_writers_are_ignored():
    record = StreamRecord(stream="a", spec=StreamSpec(source="x"))
    registered, wanted = dump_record(record)
    newer = registered.replace(b'{"spec":{', b'{"colour":1,"spec":{"smell":2,')
    assert newer != registered
    assert load_record("a", newer, wanted.encode()) == record


def test_presences_come_back_as_they_were():
    info = ModelInfo(
        name="tiny",
        fingerprint="3fa9c1",
        trained=False,
        crop=64,
        tubelet=2,
        patch=16,
        trained_frames=64,
        dtype="float32",
        config={"hidden_size": 192, "nested": {"a": [1, 2.5, None]}},
    )
    for presence in (
        Presence(kind="encoder", replica="e1", model=info),
        Presence(kind="ingest", replica="i1"),
    ):
        assert load_presence(dump_presence(presence)) == presence


# what was seen ----------------------------------------------------------------------------------
def life(epoch, began_ms, appends, server="a"):
    return Life(epoch=epoch, began_ms=began_ms, server=server, appends=appends)


def test_an_answer_that_was_overtaken_tells_nothing():
    seen = SeenLife()
    assert seen.newest == Life()
    for told, newest in [
        (life("e1", 7, 5), life("e1", 7, 5)),
        (life("e1", 7, 4), life("e1", 7, 5)),
        (life("e1", 7, 5, server="b"), life("e1", 7, 5, server="b")),
        (life("e2", 8, 3), life("e2", 8, 3)),
        (life("e1", 7, 9), life("e2", 8, 3)),
    ]:
        seen.saw(told)
        assert seen.newest == newest
