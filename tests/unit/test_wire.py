"""Arrays to bytes and back; anything else is refused with a sentence."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.errors import ShapeMismatch
from streamer.wire import Header, Packed, from_bytes, pack, to_bytes, unpack

pytestmark = pytest.mark.unit

CARRIERS = {
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": np.uint16,
    "uint8": np.uint8,
    "int64": np.int64,
}


def _packed(dtype: str = "float32", shape: tuple[int, ...] = (3, 4)) -> Packed:
    array = np.arange(np.prod(shape), dtype=CARRIERS[dtype]).reshape(shape)
    return pack(array, dtype=dtype, stream="cam", clip=7, model="f00d", grid=(3, 2, 2))


@given(
    dtype=st.sampled_from(sorted(CARRIERS)),
    shape=st.lists(st.integers(0, 4), max_size=4).map(tuple),
)
def test_bytes_and_back(dtype: str, shape: tuple[int, ...]) -> None:
    packed = _packed(dtype, shape)
    again = from_bytes(to_bytes(packed))
    assert again.header == packed.header
    np.testing.assert_array_equal(unpack(again), packed.array)


def test_what_arrives_is_read_only_and_not_copied() -> None:
    data = to_bytes(_packed())
    array = unpack(from_bytes(data))
    assert not array.flags.writeable
    assert np.shares_memory(array, np.frombuffer(data, dtype=np.uint8))
    packed = _packed()
    assert np.shares_memory(unpack(packed), packed.array)
    assert packed.array.flags.writeable


def test_the_array_is_aligned() -> None:
    data = to_bytes(_packed())
    assert (len(data) - _packed().array.nbytes) % 64 == 0


def test_pickles() -> None:
    again = pickle.loads(pickle.dumps(_packed("bfloat16"), protocol=5))
    np.testing.assert_array_equal(unpack(again), _packed("bfloat16").array)


def test_a_newer_header_is_understood() -> None:
    data = to_bytes(_packed())
    size = int.from_bytes(data[4:8], "little")
    header = json.loads(data[8 : 8 + size]) | {"colour": "blue"}
    text = json.dumps(header).encode()
    newer = data[:4] + len(text).to_bytes(4, "little") + text + data[8 + size :]
    assert from_bytes(newer).header == _packed().header


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"SLT1",
        b"nonsense of some length",
        to_bytes(_packed())[:-1],
        to_bytes(_packed()) + b"x",
        b"SLT1" + (4).to_bytes(4, "little") + b"[1]",
        b"SLT1" + (4).to_bytes(4, "little") + b"[12]",
        b"SLT1" + (2).to_bytes(4, "little") + b"{}",
        b"SLT1" + (2**31).to_bytes(4, "little") + b"{}",
        b"SLT1" + (37).to_bytes(4, "little") + b'{"shape": [-2, 2], "dtype": "uint8"} ',
        b"SLT1" + (34).to_bytes(4, "little") + b'{"shape": [2], "dtype": "object"}  ',
        b"SLT1" + (35).to_bytes(4, "little") + b'{"shape": [2], "dtype": ["uint8"]} ' + b"xx",
    ],
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ShapeMismatch):
        from_bytes(data)


def test_arrays_that_are_not_what_they_say_are_refused() -> None:
    with pytest.raises(ShapeMismatch, match="float64"):
        pack(np.zeros(3))
    with pytest.raises(ShapeMismatch, match="travels as"):
        pack(np.zeros(3, dtype=np.float32), dtype="bfloat16")
    lying = Packed(header=Header(shape=(4,), dtype="uint8"), array=np.zeros(3, dtype=np.uint8))
    with pytest.raises(ShapeMismatch, match="promises"):
        unpack(lying)
