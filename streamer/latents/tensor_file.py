"""What a safetensors file says of itself, read without its library.

Layout: 8 bytes, little endian, length of the header; the header, a JSON object; the tensors.
Source: github.com/huggingface/safetensors, README, Format.
"""

from __future__ import annotations

import json
from typing import Any

from streamer.errors import CheckpointError

__all__ = ["is_tensor_file", "tensor_header"]

_MAX_HEADER = 100_000_000  # the library's own bound


def is_tensor_file(head: bytes, *, size: int) -> bool:
    """Whether a file that begins so, and is so large, can be one; no video begins like that."""
    length = int.from_bytes(head[:8], "little")
    return len(head) > 8 and head[8:9] == b"{" and 2 <= length <= size - 8


def tensor_header(content: bytes) -> dict[str, Any]:
    """Name -> dtype, shape and place of each tensor; `__metadata__` -> strings.

    Raises:
        CheckpointError: no such file.
    """
    if is_tensor_file(content[:9], size=len(content)):
        length = int.from_bytes(content[:8], "little")
        try:
            header = json.loads(content[8 : 8 + min(length, _MAX_HEADER)])
        except ValueError:
            header = None
        if isinstance(header, dict):
            return header
    raise CheckpointError("This is no safetensors file.")
