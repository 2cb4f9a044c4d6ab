"""Why a store says no: the same sentences from every implementation."""

from __future__ import annotations

from streamer.errors import CapacityError, Conflict, LeaseLost, NotFound
from streamer.store.config import StoreConfig

__all__ = ["check_body", "lease_held", "lease_lost", "no_room", "other_spec", "unknown_stream"]


def unknown_stream(stream: str) -> NotFound:
    return NotFound(f"There is no stream {stream!r}.")


def other_spec(stream: str) -> Conflict:
    return Conflict(
        f"Stream {stream!r} is registered with another spec; delete it first or take another id."
    )


def no_room(config: StoreConfig) -> CapacityError:
    return CapacityError(
        f"{config.max_streams} streams are registered, the most this store takes; delete one first."
    )


def lease_held(stream: str, owner: str) -> Conflict:
    return Conflict(f"Stream {stream!r} is run by {owner}; its lease is fresh.")


def lease_lost(stream: str) -> LeaseLost:
    return LeaseLost(
        f"The lease on stream {stream!r} is no longer ours: it expired, was taken over, or the "
        "stream was deleted."
    )


def check_body(body: bytes, config: StoreConfig) -> None:
    """Raises `ValueError` unless `body` looks like a JSON object of a size that is taken."""
    if len(body) > config.max_body_bytes:
        raise ValueError(f"an event of {len(body)} bytes; the store takes {config.max_body_bytes}")
    if not (body.startswith(b"{") and body.endswith(b"}")):
        raise ValueError("an event's body is one JSON object, without space around it")
