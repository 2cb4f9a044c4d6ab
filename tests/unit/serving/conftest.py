"""A model of a few thousand weights, clips for it, and a store with one stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from streamer.models.config import VJepa2Config
from streamer.models.vjepa2 import VJepa2
from streamer.records import AnticipationRequest, Clip, StreamSpec
from streamer.store.memory import MemoryStore
from streamer.store.protocol import Lease

FRAMES = 8
END_NS = 1_700_000_000_000_000_000


@pytest.fixture(scope="session")
def small_config() -> VJepa2Config:
    return VJepa2Config(
        crop_size=32,
        frames_per_clip=FRAMES,
        hidden_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        pred_hidden_size=24,
        pred_num_hidden_layers=1,
        pred_num_attention_heads=2,
        trained=False,
    )


@pytest.fixture(scope="session")
def small_model(small_config: VJepa2Config) -> VJepa2:
    torch.manual_seed(0)
    model = VJepa2(small_config, name="small")
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return model.eval()


@pytest.fixture(scope="session")
def make_clip() -> Callable[..., Clip]:
    def make(index: int = 0, *, seed: int = 0, size: int = 32, **changes: Any) -> Clip:
        shape = (FRAMES, size, size, 3)
        pixels = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
        pixels.flags.writeable = False  # as they arrive from another process
        values: dict[str, Any] = {
            "stream": "cam",
            "index": index,
            "frames": pixels,
            "start_ns": END_NS - 1_750_000_000,
            "end_ns": END_NS,
            "fps": 4.0,
            "first_frame": 0,
            "last_frame": 53,
            "last_tick": 7 + 4 * index,
            "dropped": 0,
            "filled": 0,
            "clock": "file",
            "generation": 0,
            "arrived_ns": 0,
        }
        return Clip(**(values | changes))

    return make


@pytest.fixture(scope="session")
def make_request() -> Callable[..., AnticipationRequest]:
    def make(clip: Clip, *, lease: str, **changes: Any) -> AnticipationRequest:
        values: dict[str, Any] = {
            "stream": clip.stream,
            "lease": lease,
            "mode": "contiguous",
            "horizons_s": (0.5, 1.0),
            "clip": clip.index,
            "start_ns": clip.start_ns,
            "end_ns": clip.end_ns,
            "frames": clip.frames.shape[0],
            "fps": clip.fps,
            "first_frame": clip.first_frame,
            "last_frame": clip.last_frame,
            "last_tick": clip.last_tick,
            "dropped": clip.dropped,
            "filled": clip.filled,
            "padded": clip.padded,
            "clock": clip.clock,
            "generation": clip.generation,
            "decode_ms": 1.5,
            "assemble_ms": 0.25,
        }
        return AnticipationRequest(**(values | changes))

    return make


@pytest.fixture
async def leased() -> tuple[MemoryStore, Lease]:
    store = MemoryStore()
    await store.create_stream("cam", StreamSpec(source="synthetic:bounce"))
    return store, await store.acquire_lease("cam", owner="test", ttl_s=60)
