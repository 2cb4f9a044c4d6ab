"""Reference inputs and outputs of published code, in the folder STREAMER_PARITY_DIR.

Modules named `test_fixture_*` need that folder and are not collected without it; the others run
always. With the variable set, a missing file is a failure.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from torch import Tensor, nn

from streamer.models.config import VJepa2Config

VARIABLE = "STREAMER_PARITY_DIR"
collect_ignore_glob = [] if os.environ.get(VARIABLE) else ["*/test_fixture_*.py"]

ATOL, RTOL = 3e-5, 1e-4


def _state() -> str:
    folder = os.environ.get(VARIABLE)
    return f"parity fixtures: {folder or f'not collected ({VARIABLE} is not set)'}"


def pytest_report_header() -> str:
    return _state()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    # the header misses this file when pytest is started above it
    terminalreporter.write_line(_state())


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One file: its config and tensors, without the leading `in.`, `out.`, `weights.`."""

    config: dict[str, Any]
    given: dict[str, Tensor]
    expected: dict[str, Tensor]
    weights: dict[str, Tensor]

    def load(self, module: nn.Module, name: str) -> None:
        """Fill a module with the weights of that name, strictly."""
        prefix = f"{name}." if name else ""
        state = {k.removeprefix(prefix): t for k, t in self.weights.items() if k.startswith(prefix)}
        module.load_state_dict(state, strict=True)
        module.eval()


@pytest.fixture(scope="session")
def parity_dir() -> Path:
    return Path(os.environ[VARIABLE])


@pytest.fixture(scope="session")
def published(parity_dir: Path) -> Callable[[str], Published]:
    """Reads a file by name."""

    def read(name: str) -> Published:
        with safe_open(parity_dir / f"{name}.safetensors", framework="pt") as file:
            config = json.loads(file.metadata()["config"])
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        parts = {
            part: {k.split(".", 1)[1]: t for k, t in tensors.items() if k.startswith(f"{part}.")}
            for part in ("in", "out", "weights")
        }
        if not parts["weights"]:
            parts["weights"] = {k: t for k, t in tensors.items() if k[:3] not in ("in.", "out")}
        return Published(
            config=config,
            given=parts["in"],
            expected=parts["out"],
            weights=parts["weights"],
        )

    return read


@pytest.fixture(scope="session")
def sizes() -> Callable[..., VJepa2Config]:
    """Upstream's constructor arguments -> our config."""

    def build(encoder: dict[str, Any], predictor: dict[str, Any] | None = None) -> VJepa2Config:
        pred = predictor or {}
        return VJepa2Config(
            patch_size=encoder.get("patch_size", 16),
            crop_size=encoder["img_size"][0],
            frames_per_clip=encoder["num_frames"],
            tubelet_size=encoder["tubelet_size"],
            hidden_size=encoder["embed_dim"],
            num_hidden_layers=encoder["depth"],
            num_attention_heads=encoder["num_heads"],
            mlp_ratio=encoder.get("mlp_ratio", 4.0),
            use_silu=encoder.get("use_silu", False),
            wide_silu=encoder.get("wide_silu", True),
            layer_norm_eps=encoder.get("norm_eps", 1e-6),
            qkv_bias=encoder.get("qkv_bias", True),
            pred_hidden_size=pred.get("predictor_embed_dim", 384),
            pred_num_hidden_layers=pred.get("depth", 1),
            pred_num_attention_heads=pred.get("num_heads", 12),
            pred_num_mask_tokens=pred.get("num_mask_tokens", 1),
            pred_mlp_ratio=pred.get("mlp_ratio", 4.0),
        )

    return build


@pytest.fixture(scope="session")
def same() -> Callable[..., None]:
    """Compare network outputs within the tolerance that separates right from wrong."""

    def check(found: Tensor, expected: Tensor, *, atol: float = ATOL, rtol: float = RTOL) -> None:
        torch.testing.assert_close(found, expected, atol=atol, rtol=rtol)

    return check
