"""A picture of a soak as SVG: memory, age, threads and drops over time. No library needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from streamer.bench.sample import Sample

__all__ = ["soak_svg"]

_WIDTH, _HEIGHT, _LEFT, _TOP = 900, 150, 70, 30
_COLOURS = ("#1f5fa8", "#c4561b", "#6a6a6a")


@dataclass(frozen=True, slots=True)
class _Line:
    label: str
    value: Callable[[Sample], float | None]


_PANELS: tuple[tuple[str, tuple[_Line, ...]], ...] = (
    (
        "memory, MB",
        (
            _Line("heap and stacks", lambda row: row.memory_mb),
            _Line("with libraries (PSS)", lambda row: row.pss_mb),
        ),
    ),
    (
        "age of events, s",
        (
            _Line("p50", lambda row: row.age_p50_s),
            _Line("p95", lambda row: row.age_p95_s),
            _Line("lag told by the service", lambda row: row.lag_s),
        ),
    ),
    (
        "threads and open files",
        (_Line("threads", lambda row: row.threads), _Line("files", lambda row: row.fds)),
    ),
    ("processor, cores", (_Line("all processes", lambda row: row.cpu_cores),)),
    ("dropped so far", (_Line("pictures and clips", lambda row: row.drops.total),)),
)


def soak_svg(samples: Sequence[Sample], *, title: str, warm_up_s: float) -> str:
    """The whole picture; the warm-up is shaded."""
    height = _TOP + len(_PANELS) * (_HEIGHT + _TOP) + 20
    last_s = max((row.at_s for row in samples), default=1.0) or 1.0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 20}"'
        f' height="{height}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{_LEFT}" y="18" font-size="14">{escape(title)}</text>',
    ]
    for number, (name, lines) in enumerate(_PANELS):
        top = _TOP + 20 + number * (_HEIGHT + _TOP)
        parts += _panel(samples, name, lines, top=top, last_s=last_s, warm_up_s=warm_up_s)
    return "\n".join([*parts, "</svg>", ""])


def _panel(
    samples: Sequence[Sample],
    name: str,
    lines: Sequence[_Line],
    *,
    top: int,
    last_s: float,
    warm_up_s: float,
) -> list[str]:
    bottom = top + _HEIGHT - _TOP
    values = [v for line in lines for row in samples if (v := line.value(row)) is not None]
    high = max(values, default=1.0) * 1.05 or 1.0
    shade = min(1.0, warm_up_s / last_s) * _WIDTH
    parts = [
        f'<rect x="{_LEFT}" y="{top}" width="{shade:.1f}" height="{bottom - top}" fill="#eee"/>',
        f'<path d="M{_LEFT},{top}V{bottom}H{_LEFT + _WIDTH}" fill="none" stroke="black"/>',
        f'<text x="{_LEFT - 6}" y="{top + 8}" text-anchor="end">{high:.4g}</text>',
        f'<text x="{_LEFT - 6}" y="{bottom}" text-anchor="end">0</text>',
        f'<text x="{_LEFT + _WIDTH}" y="{bottom + 14}" text-anchor="end">'
        f"{last_s / 60:.1f} min</text>",
        f'<text x="{_LEFT + 4}" y="{top - 4}">{escape(name)}</text>',
    ]
    for number, line in enumerate(lines):
        colour = _COLOURS[number]
        points = [
            f"{_LEFT + row.at_s / last_s * _WIDTH:.1f},{bottom - v / high * (bottom - top):.1f}"
            for row in samples
            if (v := line.value(row)) is not None
        ]
        parts.append(
            f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}"'
            ' stroke-width="1.2"/>'
        )
        parts.append(
            f'<text x="{_LEFT + 260 + 180 * number}" y="{top - 4}" fill="{colour}">'
            f"{escape(line.label)}</text>"
        )
    return parts
