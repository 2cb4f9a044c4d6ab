"""The folder of a Ray of our own: gone afterwards, also when this process is killed."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["scratch_folder"]

# Waits until the pipe closes, which it does however this process ends. Repeats, because Ray's
# processes, which Ray's own reaper ends at the same time, may write once more.
_SWEEP = 'cat >/dev/null; for n in 1 2 3 4 5; do sleep 1; rm -rf -- "$1"; done'


@contextmanager
def scratch_folder() -> Iterator[str]:
    """A new folder, removed after the block and when this process dies within it (SIGKILL, or a
    second Ctrl-C). An error in the block keeps it: what went wrong is written in there.
    """
    # Short, because paths of sockets below it are limited to 107 bytes; ours, because another
    # user's /tmp/ray is not writable.
    folder = tempfile.mkdtemp(prefix="streamer-", dir="/tmp")
    sweeper = subprocess.Popen(
        ["/bin/sh", "-c", _SWEEP, "sh", folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,  # Ctrl-C goes to everything in the terminal's group
    )
    try:
        yield folder
    finally:
        sweeper.kill()
        sweeper.communicate()
    shutil.rmtree(folder, ignore_errors=True)
