"""Arrays on the wire: a header that says what they are, and the bytes, never copied on arrival.

NumPy has no bfloat16, so such arrays travel as a ``uint16`` view with the true dtype in the
header. A `Packed` goes through Ray as it is (the array out of band, read-only and shared on
arrival); as one run of bytes it is::

    b"SLT1" | uint32 little endian: length of header | header: JSON, padded with spaces | array

with the array at a multiple of 64 bytes.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from streamer.errors import ShapeMismatch

__all__ = ["Header", "Packed", "WireDtype", "from_bytes", "pack", "to_bytes", "unpack"]

WireDtype = Literal["float32", "float16", "bfloat16", "uint8", "int64"]

_CARRIERS: Final[dict[str, str]] = {
    "float32": "<f4",
    "float16": "<f2",
    "bfloat16": "<u2",
    "uint8": "|u1",
    "int64": "<i8",
}
_MAGIC: Final = b"SLT1"
_ALIGN: Final = 64
_MAX_HEADER: Final = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What an array is."""

    shape: tuple[int, ...]
    dtype: WireDtype
    """The true dtype; `bfloat16` is carried as uint16."""
    stream: str = ""
    clip: int = -1
    """Clip index it belongs to; -1 when it belongs to none."""
    model: str = ""
    """Model fingerprint."""
    grid: tuple[int, int, int] | None = None
    """(S, h, w) of a latent."""
    normed: bool = False
    """As `Latent.normed`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """A header and its array."""

    header: Header
    array: NDArray[Any]
    """C-contiguous, dtype of the carrier, shape as in the header."""


def pack(
    array: NDArray[Any],
    *,
    dtype: WireDtype | None = None,
    stream: str = "",
    clip: int = -1,
    model: str = "",
    grid: tuple[int, int, int] | None = None,
    normed: bool = False,
) -> Packed:
    """Put a header to an array; the array is not copied when it is contiguous.

    Args:
        dtype: what the values are; needed for `bfloat16`, given as a uint16 view.

    Raises:
        ShapeMismatch: a dtype that the wire does not know, or that is not the array's.
    """
    name = dtype or str(array.dtype)
    carrier = _carrier(name)
    if array.dtype != carrier:
        raise ShapeMismatch(f"{name} travels as {carrier}; the array holds {array.dtype}.")
    header = Header(
        shape=array.shape,
        dtype=name,  # type: ignore[arg-type]  # _carrier has checked it
        stream=stream,
        clip=clip,
        model=model,
        grid=grid,
        normed=normed,
    )
    return Packed(header=header, array=np.ascontiguousarray(array))


def unpack(packed: Packed) -> NDArray[Any]:
    """The array, read-only and not copied; `bfloat16` as its uint16 view.

    Raises:
        ShapeMismatch: the array is not what the header says.
    """
    header, array = packed.header, packed.array
    if array.dtype != _carrier(header.dtype) or array.shape != tuple(header.shape):
        raise ShapeMismatch(
            f"The header promises {header.dtype} {list(header.shape)}; "
            f"found {array.dtype} {list(array.shape)}."
        )
    view = array.view()
    view.flags.writeable = False
    return view


def to_bytes(packed: Packed) -> bytes:
    """One run of bytes, for files and stores."""
    text = json.dumps(asdict(packed.header), separators=(",", ":")).encode()
    start = len(_MAGIC) + 4
    text += b" " * (-(start + len(text)) % _ALIGN)
    return b"".join((_MAGIC, len(text).to_bytes(4, "little"), text, packed.array.tobytes()))


def from_bytes(data: bytes | bytearray | memoryview) -> Packed:
    """The inverse of `to_bytes`; the array is a read-only view of `data`.

    Raises:
        ShapeMismatch: not bytes of `to_bytes`, or cut short.
    """
    view = memoryview(data).cast("B").toreadonly()
    header, start = _read_header(view)
    carrier = _carrier(header.dtype)
    expected = int(np.prod(header.shape, dtype=np.int64)) * carrier.itemsize
    if min(header.shape, default=0) < 0 or len(view) - start != expected:
        raise ShapeMismatch(
            f"The header promises {header.dtype} {list(header.shape)}, {expected} bytes; "
            f"{len(view) - start} bytes follow."
        )
    array = np.frombuffer(view, dtype=carrier, offset=start, count=-1 if expected else 0)
    return Packed(header=header, array=array.reshape(header.shape))


def _read_header(view: memoryview) -> tuple[Header, int]:
    start = len(_MAGIC) + 4
    if len(view) < start or bytes(view[: len(_MAGIC)]) != _MAGIC:
        raise ShapeMismatch("These bytes do not begin as a packed array does.")
    size = int.from_bytes(view[len(_MAGIC) : start], "little")
    if size > _MAX_HEADER or len(view) < start + size:
        raise ShapeMismatch(f"The packed array is cut short: its header should be {size} bytes.")
    try:
        values = json.loads(bytes(view[start : start + size]))
        header = Header(**_tuples(values))
    except (ValueError, TypeError, AttributeError) as error:
        raise ShapeMismatch("The header of the packed array cannot be read.") from error
    return header, start + size


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    known = {field.name for field in fields(Header)}
    read = {key: value for key, value in values.items() if key in known}  # newer ones may add
    read["shape"] = tuple(int(size) for size in read["shape"]) if "shape" in read else ()
    if read.get("grid") is not None:
        read["grid"] = tuple(int(size) for size in read["grid"])
    return read


def _carrier(dtype: str) -> np.dtype[Any]:
    if not isinstance(dtype, str) or dtype not in _CARRIERS:  # a header may hold anything
        raise ShapeMismatch(f"The wire carries {', '.join(_CARRIERS)}; found {dtype}.")
    return np.dtype(_CARRIERS[dtype])
