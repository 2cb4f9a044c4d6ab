"""What `watch` shows of a stream: state from messages, drawn as one table. No I/O."""

from __future__ import annotations

from collections import deque
from typing import Any, TypeVar

from rich.console import Group, RenderableType
from rich.styled import Styled
from rich.table import Table
from rich.text import Text

from streamer.cli.episodes import EpisodeWatch
from streamer.clock import monotonic_ns

__all__ = ["StreamPanel", "bar", "sparkline"]

_BLOCKS = " ▁▂▃▄▅▆▇█"
_HISTORY = 48
_NO_LABEL = "-"
_Cell = TypeVar("_Cell", str, Text)
_BAR_CHARS = 16
_STAGES = ("queue", "encode", "rollout", "total")


def bar(value: float, *, largest: float, chars: int = _BAR_CHARS) -> str:
    """A horizontal bar with eighths, `chars` wide at `largest`."""
    share = min(1.0, value / largest) if largest > 0 else 0.0
    eighths = round(share * chars * 8)
    full, rest = divmod(max(0, eighths), 8)
    return "█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")


def sparkline(values: list[float]) -> str:
    """One character per value, from the smallest to the largest."""
    if not values:
        return ""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    return "".join(_BLOCKS[1 + round((value - low) / span * 7)] for value in values)


class StreamPanel:
    """Newest state of one stream.

    Args:
        stream: its id.
        state: as it is before the first message.
    """

    def __init__(self, stream: str, *, state: str) -> None:
        self._stream = stream
        self._state: dict[str, Any] = {"state": state}
        self._event: dict[str, Any] | None = None
        self._surprise: deque[float] = deque(maxlen=_HISTORY)
        self._episodes = EpisodeWatch()
        self._notes: list[str] = []
        self._largest_drift = 0.0
        self._has_labels = False
        self._lost: tuple[str, int] | None = None

    def take(self, message: dict[str, Any]) -> None:
        """A message of the feed; unknown types are ignored."""
        self._lost = None
        if ended := self._episodes.take(message):
            self.note(ended)
        match message.get("type"):
            case "anticipation":
                self._take_event(message)
            case "stream.state":
                self._state = message
            case "gap":
                self.note(_loss(message))

    def lose(self, text: str) -> None:
        """The connection is lost, as `text` says: until the next message all of it is old."""
        since_ns = self._lost[1] if self._lost else monotonic_ns()
        self._lost = (text, since_ns)

    def note(self, text: str) -> None:
        """A line at the bottom; the newest three stay."""
        self._notes = [*self._notes, text][-3:]

    def render(self) -> RenderableType:
        """What to draw now."""
        parts: list[RenderableType] = [self._title()]
        if episode := self._episodes.text():
            parts.append(Text(episode, style="dim" if self._lost else "bold red"))
        if self._event is None:
            parts.append(Text("waiting for the first anticipation", style="dim"))
        else:
            shown: list[RenderableType] = [self._futures(self._event), self._figures(self._event)]
            parts += [Styled(each, "dim") for each in shown] if self._lost else shown
        parts += [Text(note, style="yellow") for note in self._notes]
        return Group(*parts)

    def _take_event(self, event: dict[str, Any]) -> None:
        self._event = event
        heads = [event.get("present", {}), *(each.get("heads", {}) for each in event["futures"])]
        self._has_labels |= any(_best(each) != _NO_LABEL for each in heads)
        drifts = [future["drift"] for future in event["futures"]]
        self._largest_drift = max(self._largest_drift, *drifts, 0.0)
        if event["surprise"] is not None:
            self._surprise.append(event["surprise"]["value"])

    def _title(self) -> Text:
        title = Text(self._stream, style="bold")
        if (lost := self._lost) is not None:
            text, since_ns = lost
            age_s = (monotonic_ns() - since_ns) / 1e9
            return title.append(f"  {text} ({age_s:.0f} s)", style="dim")
        state = self._state
        title.append(f"  {state['state']}", style="green" if state["state"] == "live" else "yellow")
        if state.get("need"):
            title.append(f" ({state['reason']} {state['have']}/{state['need']} frames)")
        elif state.get("reason"):
            title.append(f" ({state['reason']})")
        if state.get("retry_in_s") is not None:
            title.append(f", next try in {state['retry_in_s']:.0f} s", style="yellow")
        if state.get("detail"):
            title.append(f"  {state['detail']}", style="dim")
        if self._event is not None:
            title.append(f"  #{self._event['seq']}")
            title.append(f"  {self._event['model']['name']}")
            if not self._event["model"]["trained"]:
                title.append("  untrained: the numbers mean nothing", style="red")
        return title

    def _futures(self, event: dict[str, Any]) -> Table:
        table = Table(box=None, pad_edge=False)
        for name in ("WHEN", "AT", *self._what("WHAT"), "DRIFT", ""):
            table.add_column(name)
        now = self._what(Text(_best(event.get("present", {}))))
        table.add_row("now", event["window"]["end"][11:21], *now, "", "")
        for future in event["futures"]:
            drift = future["drift"]
            table.add_row(
                f"+{future['horizon_s']:g} s",
                future["end"][11:21],
                *self._what(Text(_best(future.get("heads", {})))),
                f"{drift:.3f}",
                bar(drift, largest=self._largest_drift),
            )
        return table

    def _what(self, cell: _Cell) -> tuple[_Cell, ...]:
        """A cell of the column for labels, which is there once an event had some."""
        return (cell,) if self._has_labels else ()

    def _figures(self, event: dict[str, Any]) -> Table:
        table = Table(box=None, pad_edge=False, show_header=False)
        surprise = event["surprise"]
        value = "-" if surprise is None else f"{surprise['value']:.3f}"
        if surprise is not None and surprise["z"] is not None:
            value += f" (z {surprise['z']:+.1f})"
        table.add_row("surprise", f"{value}  {sparkline(list(self._surprise))}")
        latency = event["latency_ms"]
        table.add_row("latency", "  ".join(f"{name} {latency[name]:.0f} ms" for name in _STAGES))
        window = event["window"]
        table.add_row(
            "window",
            f"{window['frames']} frames at {window['fps']:g} fps, {window['dropped']} lost",
        )
        if event["notes"]:
            table.add_row("notes", ", ".join(event["notes"]))
        return table


def _best(heads: dict[str, Any]) -> str:
    """The best label of each head; a dash without probes."""
    best = [f"{labels[0]['label']} {labels[0]['score']:.0%}" for labels in heads.values() if labels]
    return ", ".join(best) or _NO_LABEL


def _loss(gap: dict[str, Any]) -> str:
    if gap["reason"] == "restart":
        return "the event log began anew; what was in the old one is gone"
    lost = gap["to_seq"] - gap["from_seq"] + 1
    return f"gap: {lost} events not received ({gap['reason']})"
