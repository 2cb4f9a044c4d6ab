"""One subscriber's feed. Sans-I/O: client messages, log slices and the time in; messages out.

What is unusual here:

- Without a cursor a feed starts *from now on*; cursor 0 gives everything that is retained.
- Answers to the client go before waiting events; options work on all events not yet handed out.
- The log is read at its own pace, not at the subscriber's: whoever does not take the messages loses
  the oldest and is told so by one `gap`; catching up after a resume is paced instead (`track.py`).
- A feed of several streams (`can_change`) takes new ones from its client: the skin sees them in
  `opening` and answers each with `join` or `lose`. All come or none, and later messages wait.
- A paused feed forgets what waits and reads it again from its cursor when it goes on.
- Once `close` is set no input changes anything; the skin sends what `next_message` still gives,
  then closes. After 4408 it gives nothing: the subscriber does not read.

The skin owns the socket, the store and the loop (`streamer/gateway/feed_run.py`): it follows the
log of each stream of `followed` by `wanted` and `receive_log`, always reads, so that it sees the
goodbye, and calls `tick` now and then, which finds the slow subscriber. With 4408 the writer hangs
in its send: the skin then cancels it and drops the connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from streamer.clock import wall_ns
from streamer.errors import FeedError, NotFound, ProtocolViolation, StreamerError, SubscriberTooSlow
from streamer.events.choice import Choice
from streamer.events.compose import Close, Composer, Message
from streamer.events.config import FeedConfig
from streamer.events.cursor import Cursor, format_cursor, parse_cursor
from streamer.events.inbox import Refusal, parse_client_message
from streamer.events.lineup import Lineup
from streamer.events.outbox import Event, Loss
from streamer.events.render import Renderer
from streamer.events.schema import (
    ClientMessage,
    FeedContinue,
    FeedOptions,
    FeedPause,
    FeedResume,
    SessionUpdate,
    StreamStats,
)
from streamer.events.showcase import Showcase, Shown
from streamer.events.track import Log, Read, Track
from streamer.events.ulid import Ulids

__all__ = ["FeedSession"]

_RESTART_CODE = 1012


class FeedSession:
    """One feed connection.

    Args:
        config: bounds.
        renderer: may be shared by the sessions of a process.
        options: what the subscriber wants to begin with.
        can_change: the client may choose other streams.
        wall: UTC nanoseconds now, for the `time` of messages; ages come in as `now_ns`.
        ulids: ids of transient messages.
    """

    def __init__(
        self,
        *,
        config: FeedConfig,
        renderer: Renderer,
        options: FeedOptions | None = None,
        can_change: bool = False,
        wall: Callable[[], int] = wall_ns,
        ulids: Ulids | None = None,
    ) -> None:
        self.options = FeedOptions() if options is None else options
        self.close: Close | None = None
        """Set once the session is over."""
        self._config = config
        self._renderer = renderer
        self._compose = Composer(wall=wall, ulids=ulids)
        self._replies: deque[Message] = deque()
        self._showcase = Showcase()
        self._lineup = Lineup(config=config, is_wanted=self._is_wanted)
        self._can_change = can_change
        self._is_paused = False
        self._choice = Choice()
        self._held: deque[ClientMessage | Refusal] = deque()
        self._errors = 0
        self._spoke_ns = 0

    @property
    def dropped(self) -> int:
        """Events that this subscriber lost by not taking them."""
        return self._lineup.dropped

    @property
    def streams(self) -> tuple[str, ...]:
        """Streams that it carries now."""
        return self._lineup.streams

    @property
    def opening(self) -> list[str]:
        """Streams that the client asked for and that wait for `join` or `lose`."""
        return self._choice.opening

    @property
    def followed(self) -> frozenset[str]:
        """Streams whose logs the skin has to follow: carried ones, and those to come."""
        return frozenset((*self.streams, *self._choice.pending))

    @property
    def cursors(self) -> dict[str, str]:
        """Stream -> where to go on after the last message that was handed out."""
        return self._lineup.cursors()

    def open(
        self,
        logs: Mapping[str, Log],
        *,
        after: Mapping[str, Cursor] | None = None,
        strict: bool = False,
        now_ns: int,
    ) -> None:
        """Begin. Call once, before anything else.

        Args:
            logs: stream -> any slice of its log as it is now (``limit=0`` will do).
            after: stream -> where to go on; a stream without one starts from now on.
            strict: close with 4410 rather than tell a gap when a cursor is outside of the log.
            now_ns: monotonic.
        """
        self._spoke_ns = now_ns
        for stream, log in logs.items():
            self._lineup.add(stream, log)
        self._reply(self._compose.created(logs, self.options, config=self._config))
        try:
            for stream, cursor in (after or {}).items():
                self._lineup[stream].resume(cursor, strict=strict)
                self._lineup[stream].settle(logs[stream])
        except FeedError as error:
            self._fail(error)

    def join(self, stream: str, log: Log) -> None:
        """A stream of `opening` is there; it begins at the head of `log`. One that the client does
        not want any more is ignored."""
        if not self.close and self._choice.join(stream, log):
            self._make_choice()
            self._go_on()

    def lose(self, stream: str, error: StreamerError) -> None:
        """A stream cannot be opened: the update that asked for it is refused whole. Or it is gone:
        the client is told, and the others go on."""
        if self.close:
            return
        if stream in self._choice.pending:
            update, _ = self._choice.end()
            self._refuse(error, update.id)
            self._go_on()
        elif stream in self._lineup:
            self._lineup.remove(stream)
            self._reply(self._compose.error(error, in_reply_to=None))

    def warn(self, error: StreamerError) -> None:
        """Tell what is wrong with an option that holds all the same."""
        if not self.close:
            self._reply(self._compose.error(error, in_reply_to=None))

    def wanted(self, stream: str) -> Read | None:
        """What to read of this stream's log; None while the feed is paused, or is catching up and
        there is no room, or does not carry the stream."""
        if self.close or self._is_paused or stream not in self._lineup:
            return None
        return self._lineup[stream].wanted()

    def receive_log(self, read: Read, log: Log, *, now_ns: int) -> None:
        """The answer to a `wanted` read; one from before a resume or pause is ignored."""
        if self.close or read.stream not in self._lineup:
            return
        try:
            self._lineup[read.stream].receive(read, log, now_ns=now_ns)
        except FeedError as error:
            self._fail(error)
        self.tick(now_ns=now_ns)

    def receive_text(self, text: str, *, now_ns: int) -> None:
        """A text message of the client."""
        self.tick(now_ns=now_ns)
        if self.close:
            return
        try:
            message = parse_client_message(text, max_bytes=self._config.max_message_bytes)
        except FeedError as error:
            self._fail(error)
            return
        self._held.append(message)
        if len(self._held) > self._config.max_replies:
            self._fail(SubscriberTooSlow("Too many messages wait for an answer."))
        self._go_on()

    def receive_binary(self) -> None:
        """A binary message of the client: the protocol has none."""
        if not self.close:
            self._fail(ProtocolViolation("Messages are JSON text; a binary one came."))

    def drain(self, *, reason: str, retry_after_s: float) -> None:
        """The server goes away: say so and where to resume, then close with 1012."""
        if self.close:
            return
        self._reply(
            self._compose.closing(
                reason=reason, retry_after_s=retry_after_s, resume_after=self.cursors
            )
        )
        self.close = self.close or Close(_RESTART_CODE, reason)

    def tell(self, stats: StreamStats) -> None:
        """Pass this on if it is wanted and the subscriber has taken all answers before it."""
        if (
            self.options.stats
            and stats.stream in self._lineup
            and not (self._replies or self.close)
        ):
            self._reply(self._compose.stats(stats))

    def show(self, shown: Shown) -> None:
        """Pass on a latent picture if it is still wanted once there is nothing else to say."""
        self._showcase.put(shown)

    def tick(self, *, now_ns: int) -> None:
        """Time passed: close when an outbox has been full for too long."""
        if not self.close and self._lineup.is_stuck(now_ns=now_ns):
            grace_s = self._config.slow_grace_s
            self._fail(SubscriberTooSlow(f"No event was taken for more than {grace_s:g} s."))

    def next_message(self, *, now_ns: int) -> Message | None:
        """The next message to send, or None when there is nothing to say now."""
        if not self._replies and not self.close:
            self._compose_next(now_ns)
        if not self._replies:
            return None
        self._spoke_ns = now_ns
        return self._replies.popleft()

    def silence_left_s(self, *, now_ns: int) -> float:
        """Seconds until `next_message` gives a heartbeat."""
        return max(0.0, self._config.heartbeat_s - (now_ns - self._spoke_ns) / 1e9)

    # inside ---------------------------------------------------------------------------------------
    def _is_wanted(self, event: Event) -> bool:
        return self._renderer.is_wanted(event.body, self.options)

    @property
    def _wants_pictures(self) -> bool:
        return bool(self.options.picture) and not self._is_paused

    def _passes(self, track: Track, event: Event) -> bool:
        if not self._is_wanted(event):
            return False
        rate_hz = self.options.max_rate_hz
        if rate_hz is None or self._renderer.event_type(event.body) != "anticipation":
            return True
        return track.pace.passes(self._renderer.time_ns(event.body), rate_hz=rate_hz)

    def _go_on(self) -> None:
        """Messages are taken in order: none before the streams are there that one asked for."""
        while self._held and not (self.opening or self.close):
            message = self._held.popleft()
            if isinstance(message, Refusal):
                self._refuse(ProtocolViolation(message.problem), message.in_reply_to)
            else:
                self._obey(message)

    def _obey(self, message: ClientMessage) -> None:
        try:
            match message:
                case SessionUpdate(streams=None):
                    self._set_options(message)
                case SessionUpdate():
                    self._choose(message)
                    return
                case FeedResume():
                    self._resume(message)
                case FeedPause():
                    self._pause()
                case FeedContinue():
                    self._is_paused = False
        except (ProtocolViolation, NotFound) as error:
            self._refuse(error, message.id)
            return
        self._accept(message.id)

    def _set_options(self, update: SessionUpdate) -> None:
        names = update.model_fields_set & FeedOptions.model_fields.keys()
        changes = {name: getattr(update, name) for name in names}
        self.options = self.options.model_copy(update=changes)

    def _choose(self, update: SessionUpdate) -> None:
        chosen = dict.fromkeys(update.streams or ())
        if not self._can_change:
            raise ProtocolViolation("This feed carries one stream; /v1/feed carries several.")
        if len(chosen) > self._config.max_streams:
            raise ProtocolViolation(f"A feed carries at most {self._config.max_streams} streams.")
        new = [stream for stream in chosen if stream not in self._lineup]
        self._choice.begin(update, opening=new)
        if not new:
            self._make_choice()

    def _make_choice(self) -> None:
        update, arrived = self._choice.end()
        for stream in self.streams:
            if stream not in (update.streams or ()):
                self._lineup.remove(stream)
        for stream, log in arrived.items():
            self._lineup.add(stream, log)
        self._set_options(update)
        self._accept(update.id)

    def _resume(self, resume: FeedResume) -> None:
        cursors = {self._known(name): parse_cursor(at) for name, at in resume.after.items()}
        for stream, cursor in cursors.items():
            self._lineup[stream].resume(cursor, strict=resume.strict)

    def _known(self, stream: str) -> str:
        if stream not in self._lineup:
            raise NotFound(f"This feed does not carry a stream {stream[:80]!r}.")
        return stream

    def _pause(self) -> None:
        self._is_paused = True
        for track in self._lineup:
            track.rewind()

    def _accept(self, in_reply_to: str | None) -> None:
        self._errors = 0
        self._reply(
            self._compose.updated(
                self.options,
                in_reply_to=in_reply_to,
                streams=self.streams,
                is_paused=self._is_paused,
            )
        )

    def _refuse(self, error: StreamerError, in_reply_to: str | None) -> None:
        self._errors += 1
        self._reply(self._compose.error(error, in_reply_to=in_reply_to))
        if self._errors >= self._config.max_errors:
            self._fail(ProtocolViolation(f"{self._errors} messages in a row were refused."))

    def _reply(self, message: Message) -> None:
        self._replies.append(message)
        if len(self._replies) > self._config.max_replies:
            self._fail(SubscriberTooSlow("Too many answers wait to be read."))

    def _fail(self, error: FeedError) -> None:
        self.close = self.close or Close(error.ws_close, error.message, error)
        if isinstance(error, SubscriberTooSlow):
            self._replies.clear()

    def _compose_next(self, now_ns: int) -> None:
        """Queue the next event or gap, else heartbeats if they are due."""
        found = None if self._is_paused else self._lineup.pop(self._passes)
        if found is not None:
            track, item = found
            if isinstance(item, Loss):
                self._replies.append(self._compose.gap(track.stream, item))
            else:
                self._replies.append(self._render(item))
        elif (shown := self._showcase.pop(self.streams)) and self._wants_pictures:
            self._replies.append(self._compose.picture(shown))
        elif self.silence_left_s(now_ns=now_ns) <= 0:
            self._replies.extend(
                self._compose.heartbeat(track.stream, track.head_seq) for track in self._lineup
            )
            self._spoke_ns = now_ns  # also when there is no stream left to speak of

    def _render(self, event: Event) -> Message:
        return Message(
            data=self._renderer.render(event.body, event.epoch, event.seq, options=self.options),
            type=self._renderer.event_type(event.body),
            id=format_cursor(event.epoch, event.seq),
            is_retained=True,
        )
