"""Horizons that no stream could have are refused at the start."""

from __future__ import annotations

import pytest

from deployments.preflight import preflight
from streamer.errors import ConfigError
from streamer.loading import load_served_model
from streamer.settings import Settings, load_settings

pytestmark = pytest.mark.unit


def test_the_start_refuses_horizons_out_of_reach() -> None:
    far = Settings(horizons_s=(0.5, 99.0))
    for start in (load_served_model, preflight):
        with pytest.raises(ConfigError, match=r"holds 99; tiny with 64 frames .* 15\.5 s"):
            start(far)


def test_sampling_counts() -> None:
    sampling = {"fps": 30.0, "frames": 16, "stride_s": 1.0}
    with pytest.raises(ConfigError, match="holds 2; tiny with 16 frames at 30 fps"):
        load_served_model(load_settings(environ={}, options={"sampling": sampling}))


def test_clips_that_fit_no_tubelet_are_told_first() -> None:
    sampling = {"frames": 7}
    with pytest.raises(ConfigError, match="frames is 7"):
        load_served_model(load_settings(environ={}, options={"sampling": sampling}))
