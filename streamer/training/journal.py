"""What a training says of itself: one line per logged step, in two forms that other tools read."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Protocol

from streamer.errors import CheckpointError
from streamer.training.pretrain import Progress

__all__ = ["Journal", "opened_journal", "read_journal"]

_NAME = "progress"


class Journal:
    """Appends to `progress.jsonl` and `progress.csv`, and to TensorBoard's file where installed."""

    def __init__(self, folder: Path, *, step: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        kept = [row for row in read_journal(folder) if row.step <= step]
        self._jsonl = (folder / f"{_NAME}.jsonl").open("w", encoding="utf-8")
        self._file = (folder / f"{_NAME}.csv").open("w", encoding="utf-8", newline="")
        self._csv = csv.DictWriter(self._file, [each.name for each in fields(Progress)])
        self._csv.writeheader()
        self._board = _board(folder, step=step)
        for row in kept:
            self._write(row)

    def add(self, progress: Progress) -> None:
        """One logged step, on disk when this returns."""
        self._write(progress)
        for file in (self._jsonl, self._file):
            file.flush()
        if self._board is not None:
            for name, value in asdict(progress).items():
                if name != "step":
                    self._board.add_scalar(f"pretrain/{name}", value, progress.step)

    def close(self) -> None:
        for each in (self._jsonl, self._file, self._board):
            if each is not None:
                each.close()

    def _write(self, progress: Progress) -> None:
        row = asdict(progress)
        self._jsonl.write(json.dumps(row) + "\n")
        self._csv.writerow(row)


@contextmanager
def opened_journal(folder: Path, *, step: int) -> Iterator[Journal]:
    """The journal of a training that goes on after `step`; lines of later steps are forgotten:
    they will be written again."""
    journal = Journal(folder, step=step)
    try:
        yield journal
    finally:
        journal.close()


def read_journal(folder: Path) -> list[Progress]:
    """All lines so far; a last one that was cut short is left out.

    Raises:
        CheckpointError: a line in the middle that is none of ours.
    """
    path = folder / f"{_NAME}.jsonl"
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    rows: list[Progress] = []
    for i, line in enumerate(lines):
        try:
            rows.append(Progress(**json.loads(line)))
        except (ValueError, TypeError) as error:
            if i == len(lines) - 1:
                break
            raise CheckpointError(f"Line {i + 1} of {path} is not a step of a training.") from error
    return rows


class _Board(Protocol):
    """TensorBoard's writer, whose package is optional."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None: ...
    def close(self) -> None: ...


def _board(folder: Path, *, step: int) -> _Board | None:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    writer: _Board = SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)
    return writer
