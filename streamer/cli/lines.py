"""Events as lines for people. Events come as parsed JSON; unknown types are shown by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamer.cli.episodes import MARK, episode_line

__all__ = ["anticipation_line", "event_line", "state_line", "untrained_warning"]

Event = Mapping[str, Any]


def event_line(event: Event) -> str:
    """One line without a line break."""
    match event.get("type"):
        case "anticipation":
            return anticipation_line(event)
        case "stream.state":
            return state_line(event)
        case "surprise":
            return episode_line(event)
        case other:
            return f"{event.get('stream', '')}  {other}"


def anticipation_line(event: Event) -> str:
    """Like ``demo #418  09:00:03.3  surprise 0.113 (z +0.4)  ahead +0.5s 0.080 ...``."""
    parts = [
        f"{event['stream']} #{event['seq']}",
        event["window"]["end"][11:21],
        f"surprise {_surprise(event['surprise'])}",
        "drift " + "  ".join(f"+{f['horizon_s']:g}s {f['drift']:.3f}" for f in event["futures"]),
        f"{event['latency_ms']['total']:.0f} ms",
    ]
    if event["window"]["dropped"]:
        parts.append(f"{event['window']['dropped']} dropped")
    if event["notes"]:
        parts.append(f"[{', '.join(event['notes'])}]")
    return "  ".join(parts)


def state_line(event: Event) -> str:
    """Like ``demo #3  live: filling (16 of 64 frames)``."""
    line = f"{event['stream']} #{event['seq']}  {event['state']}"
    if event.get("reason"):
        line += f": {event['reason']}"
    if event.get("need"):
        line += f" ({event['have']} of {event['need']} frames)"
    if event.get("retry_in_s") is not None:
        line += f" (next try in {event['retry_in_s']:.1f} s)"
    return f"{line}  {event['detail']}" if event.get("detail") else line


def untrained_warning(model: str) -> str:
    """What a user must know before she reads a number."""
    return (
        f"The weights of model {model!r} are untrained (random): its numbers mean nothing."
        " Give --model a trained checkpoint for numbers that do."
    )


def _surprise(surprise: Event | None) -> str:
    if surprise is None:
        return "-"
    z = surprise["z"]
    shown = f"{surprise['value']:.3f}" + ("" if z is None else f" (z {z:+.1f})")
    return f"{MARK} {shown}" if surprise.get("episode") else shown
