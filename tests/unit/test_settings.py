"""Layers of settings, and what is said about wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.errors import ConfigError
from streamer.settings import Settings, load_settings

pytestmark = pytest.mark.unit


def test_defaults_work_without_anything() -> None:
    assert load_settings(environ={}) == Settings()
    assert Settings().model.name == "tiny"
    assert Settings().server.host == "127.0.0.1"


def test_options_win_over_environment_over_file_over_defaults(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("server: {host: a.example, port: 1}\nmodel: {name: from-file, threads: 3}\n")
    settings = load_settings(
        config=file,
        environ={"STREAMER_SERVER__PORT": "2", "STREAMER_MODEL__NAME": "from-env"},
        options={"model": {"name": "from-option"}, "server": {"port": None}},
    )
    assert (settings.server.host, settings.server.port) == ("a.example", 2)
    assert (settings.model.name, settings.model.threads) == ("from-option", 3)


def test_the_environment_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("mode: gap\n")
    assert load_settings(environ={"STREAMER_CONFIG": str(file)}).mode == "gap"


@pytest.mark.parametrize("text", ["10.0.0.0/8,127.0.0.1/32", '["10.0.0.0/8", "127.0.0.1/32"]'])
def test_lists_are_written_with_commas_or_as_json(text: str) -> None:
    settings = load_settings(environ={"STREAMER_SOURCES__ALLOWED_CIDRS": text})
    assert settings.sources.allowed_cidrs == ("10.0.0.0/8", "127.0.0.1/32")


def test_one_value_of_a_section_leaves_the_others(tmp_path: Path) -> None:
    settings = load_settings(environ={"STREAMER_RTSP__DENIED__FIRST_S": "3"})
    assert settings.rtsp.denied.first_s == 3
    assert settings.rtsp.denied.max_tries == Settings().rtsp.denied.max_tries == 3


@pytest.mark.parametrize("turned", [False, True])
def test_a_section_that_is_also_given_as_a_value_is_refused(turned: bool) -> None:
    environ = {"STREAMER_MODEL": "vitl", "STREAMER_MODEL__DEVICE": "cpu"}
    if turned:
        environ = dict(reversed(environ.items()))
    with pytest.raises(ConfigError, match="model"):
        load_settings(environ=environ)


def test_variables_of_others_are_left_alone() -> None:
    environ = {
        "HOME": "/root",
        "STREAMER_SERVICE_HOST": "10.0.0.1",
        "STREAMER_PORT": "tcp://10.0.0.1:80",
        "STREAMER_HEAD_SVC_PORT_80_TCP_ADDR": "10.0.0.1",
        "STREAMER_PARITY_DIR": "/somewhere",
    }
    assert load_settings(environ=environ) == Settings()


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        (
            {"STREAMER_SAMPLING__FSP": "8"},
            "Unknown setting sampling.fsp.*did you mean sampling.fps",
        ),
        ({"STREAMER_SAMPLNG__FPS": "8"}, "Unknown setting samplng.*did you mean sampling"),
        ({"STREAMER_FPS": "8"}, "Unknown setting fps.*did you mean sampling.fps"),
        ({"STREAMER_GATEWAY__OUTBX": "8"}, r"gateway\.outbx.*did you mean feed\.outbox\?"),
        ({"STREAMER_MODLE__NAME": "x"}, r"Unknown setting modle in .*did you mean model\?"),
        ({"STREAMER_QQQ": "8"}, "Unknown setting qqq in .*there are model, server"),
        ({"STREAMER_SAMPLING": "8"}, "sampling in the environment is a section"),
        ({"STREAMER_SERVER__PORT": "many"}, "server.port: .*'many'"),
        ({"STREAMER_SERVER__PORT": "70000"}, "server.port is 70000"),
        ({"STREAMER_HORIZONS_S": "[1"}, "STREAMER_HORIZONS_S"),
        ({"STREAMER_MODEL__DTYPE": "float16"}, "model.dtype"),
        ({"STREAMER_SESSION__RENEW_S": "4"}, "renew_s is 4"),
        ({"STREAMER_SAMPLING__FPS": "-1"}, "fps is -1"),
        ({"STREAMER_SAMPLING__FPS": "nan"}, "fps is nan"),
        ({"STREAMER_SAMPLING__FPS": "1000"}, "up to 240"),
        ({"STREAMER_SAMPLING__STRIDE_S": "0"}, "stride_s is 0"),
        ({"STREAMER_SAMPLING__FRAMES": "0"}, "frames is 0"),
        ({"STREAMER_HORIZONS_S": "[]"}, "horizons_s is empty"),
        ({"STREAMER_HORIZONS_S": "1,inf"}, "horizons_s holds inf"),
        ({"STREAMER_RETAIN_S": "-3"}, "retain_s is -3"),
        ({"STREAMER_SESSION__SNAPSHOT_TTL_S": "nan"}, "snapshot_ttl_s is nan"),
        ({"STREAMER_SESSION__SNAPSHOT_BYTES": "100"}, "snapshot_bytes is 100"),
        ({"STREAMER_SESSION__SNAPSHOT_BYTES": "40000"}, "but the store takes 32768"),
        ({"STREAMER_STORE__MAX_PICTURE_BYTES": "9999"}, "session.snapshot_bytes is 32768, but"),
        (
            {"STREAMER_SERVING__PICTURES__MAX_BYTES": "40000"},
            r"serving\.pictures\.max_bytes is 40000",
        ),
        ({"STREAMER_SERVING__PICTURES__MAX_BYTES": "100"}, "max_bytes is 100"),
        ({"STREAMER_SERVING__PICTURES__TTL_S": "0"}, "ttl_s is 0"),
        ({"STREAMER_SERVING__PICTURES__MAX_WAITING": "0"}, "max_waiting is 0"),
        ({"STREAMER_CONFIG": "/no/such/file"}, "/no/such/file cannot be read"),
    ],
)
def test_wrong_values_are_explained(environ: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        load_settings(environ=environ)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("modl: {name: x}", "Unknown setting modl in .*did you mean model"),
        ("model: tiny", "model in .* is a section"),
        ("- a", "must hold names and values"),
        ("a: [", "is no YAML"),
        ("a: 2024-13-45", "is no YAML"),
        ("1: 2", "must hold names and values"),
    ],
)
def test_wrong_files_are_explained(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=sentence):
        load_settings(config=file, environ={})


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("# nothing yet\n")
    assert load_settings(config=file, environ={}) == Settings()


def test_dtype_and_threads_of_the_model_reach_the_parts() -> None:
    settings = load_settings(environ={"STREAMER_MODEL__THREADS": "2"})
    on_cpu, on_gpu = settings.serving_config(device="cpu"), settings.serving_config(device="cuda:0")
    assert (on_cpu.device.threads, on_cpu.encoder.dtype, on_cpu.rollout.dtype) == (
        2,
        "float32",
        "float32",
    )
    assert on_gpu.encoder.dtype == on_gpu.rollout.dtype == "bfloat16"


def test_every_section_is_described() -> None:
    assert all(field.description for field in Settings.model_fields.values())
