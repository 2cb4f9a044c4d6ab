"""The folder of a Ray of our own, whatever ends the process."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from deployments.scratch import scratch_folder

pytestmark = pytest.mark.unit

_DIES = """
import os, signal, sys
from deployments.scratch import scratch_folder
with scratch_folder() as folder:
    open(os.path.join(folder, "log"), "w").close()
    print(folder, flush=True)
    sys.stdin.read()
    {end}
"""


def test_it_is_gone_after_the_block() -> None:
    with scratch_folder() as folder:
        Path(folder, "log").write_text("x")
    assert not Path(folder).exists()


def test_an_error_keeps_it() -> None:
    with pytest.raises(KeyError), scratch_folder() as folder:
        raise KeyError
    Path(folder).rmdir()


@pytest.mark.parametrize("end", ["os._exit(130)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_it_is_gone_after_a_hard_end(end: str) -> None:
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", _DIES.format(end=end)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
    ) as dying:
        assert dying.stdout is not None
        folder = Path(dying.stdout.readline().strip())
        assert folder.is_dir()
    limit = time.monotonic() + 10
    while folder.exists():
        assert time.monotonic() < limit
        time.sleep(0.05)
