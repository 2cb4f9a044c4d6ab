"""One subscriber's feed. Sans-I/O: client messages, log slices and the time in; messages out.

What is unusual here:

- Without a cursor a feed starts *from now on*; cursor 0 gives everything that is retained.
- Answers to the client go before waiting events; options work on all events not yet handed out.
- The log is read at its own pace, not at the subscriber's: whoever does not take the messages loses
  the oldest and is told so by one `gap`; catching up after a resume is paced instead (`track.py`).
- Once `close` is set no input changes anything; the skin sends what `next_message` still gives,
  then closes. After 4408 it gives nothing: the subscriber does not read.

The skin owns the socket, the store and the loop, for example (in one TaskGroup)::

    log = await store.read(stream, after_seq=0, limit=0)
    session = FeedSession(config=config, renderer=renderer, options=options)
    session.open({stream: log}, after={stream: parse_cursor("7f3a:418")}, now_ns=monotonic_ns())

    async def listen():                              # always have a reader, or you miss the goodbye
        async for text in socket:
            session.receive_text(text, now_ns=monotonic_ns())
            changed.set()

    async def follow():                              # one per stream
        while session.close is None:
            read = session.wanted(stream)
            if read is None:                         # catching up and no room: the writer wakes us
                await wait_for(room, timeout_s=1.0)
            else:
                await store.wait(stream, after_seq=read.after_seq, timeout_s=1.0)
                log = await store.read(stream, after_seq=read.after_seq, limit=read.limit)
                session.receive_log(read, log, now_ns=monotonic_ns())
            session.tick(now_ns=monotonic_ns())      # finds the slow subscriber
            changed.set()

    async def write():
        while True:
            message = session.next_message(now_ns=monotonic_ns())
            if message is not None:
                await socket.send_text(message.data.decode())
                room.set()
            elif session.close is not None:
                return await socket.close(session.close.code, session.close.reason)
            else:
                await wait_for(changed, timeout_s=session.silence_left_s(now_ns=monotonic_ns()))

With 4408 the writer hangs in its send: the skin then cancels it and drops the connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from streamer.clock import wall_ns
from streamer.errors import FeedError, NotFound, ProtocolViolation, StreamerError, SubscriberTooSlow
from streamer.events.compose import Close, Composer, Message
from streamer.events.config import FeedConfig
from streamer.events.cursor import Cursor, format_cursor, parse_cursor
from streamer.events.inbox import parse_client_message
from streamer.events.outbox import Event, Loss, Outbox
from streamer.events.render import Renderer
from streamer.events.schema import FeedOptions, FeedResume, SessionUpdate
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
        wall: UTC nanoseconds now, for the `time` of messages; ages come in as `now_ns`.
        ulids: ids of transient messages.
    """

    def __init__(
        self,
        *,
        config: FeedConfig,
        renderer: Renderer,
        options: FeedOptions | None = None,
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
        self._tracks: dict[str, Track] = {}
        self._turns: deque[Track] = deque()
        self._errors = 0
        self._spoke_ns = 0

    @property
    def dropped(self) -> int:
        """Events that this subscriber lost by not taking them."""
        return sum(track.outbox.dropped for track in self._tracks.values())

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
            self._tracks[stream] = self._track(stream, log)
        self._turns.extend(self._tracks.values())
        self._reply(self._compose.created(logs, self.options, config=self._config))
        try:
            for stream, cursor in (after or {}).items():
                self._tracks[stream].resume(cursor, strict=strict)
                self._tracks[stream].settle(logs[stream])
        except FeedError as error:
            self._fail(error)

    def wanted(self, stream: str) -> Read | None:
        """What to read of this stream's log; None while it is catching up and there is no room."""
        return None if self.close else self._tracks[stream].wanted()

    def receive_log(self, read: Read, log: Log, *, now_ns: int) -> None:
        """The answer to a `wanted` read; one from before a resume is ignored."""
        if self.close:
            return
        try:
            self._tracks[read.stream].receive(read, log, now_ns=now_ns)
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
        if isinstance(message, SessionUpdate):
            self._update(message)
        elif isinstance(message, FeedResume):
            self._resume(message)
        else:
            self._refuse(ProtocolViolation(message.problem), message.in_reply_to)

    def receive_binary(self) -> None:
        """A binary message of the client: the protocol has none."""
        if not self.close:
            self._fail(ProtocolViolation("Messages are JSON text; a binary one came."))

    def drain(self, *, reason: str, retry_after_s: float) -> None:
        """The server goes away: say so and where to resume, then close with 1012."""
        if self.close:
            return
        after = {name: str(track.sent) for name, track in self._tracks.items()}
        self._reply(
            self._compose.closing(reason=reason, retry_after_s=retry_after_s, resume_after=after)
        )
        self.close = self.close or Close(_RESTART_CODE, reason)

    def tick(self, *, now_ns: int) -> None:
        """Time passed: close when an outbox has been full for too long."""
        grace_s = self._config.slow_grace_s
        for track in self._tracks.values():
            since_ns = track.outbox.full_since_ns
            if since_ns is not None and now_ns - since_ns > grace_s * 1e9 and not self.close:
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
    def _track(self, stream: str, log: Log) -> Track:
        outbox = Outbox(capacity=self._config.outbox, is_wanted=self._is_wanted)
        return Track(stream, log=log, outbox=outbox, read_limit=self._config.read_limit)

    def _is_wanted(self, event: Event) -> bool:
        return self._renderer.is_wanted(event.body, self.options)

    def _update(self, update: SessionUpdate) -> None:
        names = update.model_fields_set & FeedOptions.model_fields.keys()
        changes = {name: getattr(update, name) for name in names}
        self.options = self.options.model_copy(update=changes)
        self._accept(update.id)

    def _resume(self, resume: FeedResume) -> None:
        try:
            cursors = {self._known(name): parse_cursor(at) for name, at in resume.after.items()}
        except (ProtocolViolation, NotFound) as error:
            self._refuse(error, resume.id)
            return
        for stream, cursor in cursors.items():
            self._tracks[stream].resume(cursor, strict=resume.strict)
        self._accept(resume.id)

    def _known(self, stream: str) -> str:
        if stream not in self._tracks:
            raise NotFound(f"This feed does not carry a stream {stream[:80]!r}.")
        return stream

    def _accept(self, in_reply_to: str | None) -> None:
        self._errors = 0
        self._reply(self._compose.updated(self.options, in_reply_to=in_reply_to))

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
        """Queue the next event or gap, else a heartbeat if one is due."""
        for _ in range(len(self._turns)):
            track = self._turns[0]
            self._turns.rotate(-1)
            message = self._next_item(track)
            if message is not None:
                self._replies.append(message)
                return
        if self.silence_left_s(now_ns=now_ns) <= 0:
            self._replies.extend(
                self._compose.heartbeat(name, track.head_seq)
                for name, track in self._tracks.items()
            )

    def _next_item(self, track: Track) -> Message | None:
        while (item := track.pop()) is not None:
            if isinstance(item, Loss):
                return self._compose.gap(track.stream, item)
            if self._is_wanted(item):
                return self._render(item)
        return None

    def _render(self, event: Event) -> Message:
        return Message(
            data=self._renderer.render(event.body, event.epoch, event.seq, options=self.options),
            type=self._renderer.event_type(event.body),
            id=format_cursor(event.epoch, event.seq),
            is_retained=True,
        )
