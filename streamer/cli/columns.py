"""Which columns of a table fit into a terminal. Better one column less than every number cut."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["fitting"]


def fitting(
    columns: Sequence[Sequence[str]],
    *,
    width: int,
    expendable: Sequence[int],
    between: int,
    edges: int = 0,
) -> list[int]:
    """Numbers of the columns to show, ascending.

    Args:
        columns: header and cells of each.
        width: of the terminal, characters.
        expendable: columns that may be left out, the least needed first.
        between: characters from one column to the next.
        edges: characters left and right of the whole table, together.
    """
    widths = [max((len(cell) for cell in column), default=0) for column in columns]
    kept = list(range(len(columns)))
    for each in expendable:
        if sum(widths[i] for i in kept) + between * (len(kept) - 1) + edges <= width:
            break
        kept.remove(each)
    return kept
