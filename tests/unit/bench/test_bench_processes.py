"""What a process tree uses, against what is known of it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from streamer.bench.processes import process_tree, tree_usage

pytestmark = pytest.mark.unit


def test_a_tree_has_its_root_and_what_is_below() -> None:
    with subprocess.Popen(["sleep", "30"]) as child:
        try:
            assert {os.getpid(), child.pid} <= set(process_tree(os.getpid()))
            assert process_tree(child.pid) == [child.pid]
        finally:
            child.kill()
    assert process_tree(child.pid) == []


def test_sums_follow_what_is_opened_and_started() -> None:
    before = tree_usage(os.getpid())
    halt = threading.Event()
    waiting = threading.Thread(target=halt.wait)
    waiting.start()
    with open(os.devnull), open(os.devnull):
        during = tree_usage(os.getpid())
    halt.set()
    waiting.join()
    assert during.threads == before.threads + 1
    assert during.fds == before.fds + 2
    assert during.cpu_s >= before.cpu_s
    assert 0 < during.own_bytes <= during.pss_bytes <= during.rss_bytes


def test_memory_that_is_touched_is_seen() -> None:
    before = tree_usage(os.getpid()).own_bytes
    block = b"x" * (64 << 20)
    assert tree_usage(os.getpid()).own_bytes - before > 60 << 20
    del block


def test_a_process_that_is_gone_uses_nothing() -> None:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    assert tree_usage(done.pid).processes == 0
