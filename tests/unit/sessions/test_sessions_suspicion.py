"""Who killed the process: one stream's death is many streams' death."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.errors import ConfigError
from streamer.records import StreamRecord, StreamSpec
from streamer.sessions.config import SupervisorConfig
from streamer.sessions.plan import decide
from streamer.sessions.suspicion import Suspicion

pytestmark = pytest.mark.unit

CONFIG = SupervisorConfig()
S = 10**9


def records(*streams: str) -> list[StreamRecord]:
    """The later, the younger."""
    spec = StreamSpec(source="synthetic:x")
    return [StreamRecord(stream=s, spec=spec, created_ns=n) for n, s in enumerate(streams)]


class Story:
    """A suspicion, and what happens to it second by second."""

    def __init__(self, *streams: str, config: SupervisorConfig = CONFIG) -> None:
        self.records = records(*streams)
        self.suspicion = Suspicion(config)
        self.running: set[str] = set()
        self.now_s = 0.0

    @property
    def now_ns(self) -> int:
        return round(self.now_s * S)

    def after(self, seconds: float) -> tuple[str, ...]:
        """Look again so much later and open what may be opened."""
        self.now_s += seconds
        self.suspicion.look(
            self.records, held=self.running, running=self.running, now_ns=self.now_ns
        )
        due = [r.stream for r in self.records if r.stream not in self.running]
        due = [s for s in due if s not in self.convicts]
        opened = self.suspicion.admit(due, now_ns=self.now_ns)
        self.running |= set(opened)
        return opened

    def all_die(self) -> None:
        for stream in sorted(self.running):
            self.suspicion.died(stream, now_ns=self.now_ns)
        self.running.clear()

    @property
    def convicts(self) -> tuple[str, ...]:
        return self.suspicion.convicts(now_ns=self.now_ns)


def test_the_first_death_reopens_everything_at_once() -> None:
    story = Story("a", "b", "c")
    assert story.after(0) == ("a", "b", "c")
    story.after(100)
    story.all_die()
    assert story.after(3) == ("a", "b", "c")


def test_after_the_second_the_youngest_goes_first_and_alone() -> None:
    story = Story("a", "b", "c")
    for _ in range(2):
        story.after(3)
        story.all_die()
    assert story.after(3) == ("c",)
    assert story.after(1) == story.after(2) == ()
    assert story.suspicion.on_probation == "c"
    assert story.after(3) == ("b",)  # c has passed
    story.all_die()
    assert story.convicts == ("b",)
    # c passed and a only ever died with b: nobody else waits for anything.
    assert story.after(3) == ("a", "c")


def test_deaths_far_apart_are_nobodys_fault() -> None:
    story = Story("a", "b")
    for _ in range(10):
        assert story.after(61) == ("a", "b")
        story.all_die()
    assert story.convicts == ()


def test_who_died_long_after_its_opening_is_watched_for_longer() -> None:
    story = Story("a", "b")
    for _ in range(2):
        story.after(1)
        story.after(1)
        story.after(9)
        story.all_die()
    assert story.after(1) == ("b",)
    story.after(1)
    assert story.after(9) == ()  # twice it had run for nine seconds before the end
    story.all_die()
    assert story.convicts == ("b",)


def test_whoever_was_watched_and_lived_is_opened_at_once_from_then_on() -> None:
    story = Story("a", "b", "c")
    for _ in range(2):
        story.after(1)
        story.all_die()
    story.after(1)
    story.after(1)
    assert story.after(5) == ("b",)
    story.running.clear()  # say, another replica went: its death is not b's alone to answer for
    for stream in ("c", "b"):
        story.suspicion.died(stream, now_ns=story.now_ns)
    assert story.convicts == ("b",)
    assert story.after(1) == ("a", "c")


def test_a_new_stream_is_watched_too_while_somebody_is_suspected() -> None:
    story = Story("a", "b")
    for _ in range(2):
        story.after(1)
        story.all_die()
    story.records = records("a", "b", "new")
    assert story.after(1) == ("new",)
    story.all_die()
    assert story.convicts == ()  # its first death
    assert story.after(1) == ("new",)


def test_who_was_opened_before_the_suspicion_answers_before_the_others() -> None:
    story = Story("a", "b", "late")
    for _ in range(2):
        for stream in ("a", "b"):
            story.suspicion.died(stream, now_ns=story.now_ns)
        story.now_s += 3
    story.running = {"late"}  # it was not due yet when the others were opened
    assert story.after(0) == ()
    assert story.suspicion.on_probation == "late"
    assert story.after(5) == ("b",)  # late has passed


def test_a_session_on_probation_that_never_begins_holds_up_the_others_for_a_while_only() -> None:
    story = Story("a", "b")
    for _ in range(2):
        story.after(1)
        story.all_die()
    suspicion, now_ns = story.suspicion, story.now_ns
    assert suspicion.admit(["a", "b"], now_ns=now_ns) == ("b",)
    for later_s, expected in ((29, ()), (31, ("a",))):
        at_ns = now_ns + later_s * S
        suspicion.look(story.records, held=(), running={"b"}, now_ns=at_ns)
        assert suspicion.admit(["a"], now_ns=at_ns) == expected


def test_a_session_on_probation_that_ends_by_itself_lets_the_next_one_in() -> None:
    story = Story("a", "b")
    for _ in range(2):
        story.after(1)
        story.all_die()
    assert story.after(1) == ("b",)
    story.running.clear()
    story.records = records("a")
    assert story.after(1) == ("a",)


def test_a_released_stream_has_one_life() -> None:
    story = Story("a", "b")
    for _ in range(2):
        story.after(1)
        story.all_die()
    story.after(1)
    story.all_die()
    assert story.convicts == ("b",)
    assert story.after(0.5) == ("a",)
    story.suspicion.quarantined("b")
    assert story.after(0) == ()  # a has not shown yet that it lives
    assert story.after(600) == ("b",)
    assert story.suspicion.on_probation == "b"
    story.all_die()
    assert story.convicts == ("b",)
    assert story.after(1) == ("a",)


def test_a_sentence_that_nobody_can_carry_out_lapses() -> None:
    story = Story("a")
    for _ in range(3):
        story.after(1)
        story.all_die()
    assert story.convicts == ("a",)
    assert story.after(61) == ("a",)


@dataclass
class World:
    """One ingest process, a supervisor that looks once a second, and streams that kill."""

    killers: dict[str, float]
    """Stream -> seconds from its lease to the death of the process."""
    records: list[StreamRecord]
    rng: random.Random
    suspicion: Suspicion = field(default_factory=lambda: Suspicion(CONFIG))
    now_ns: int = 0
    up_ns: int = 0
    looked_ns: int = -S
    deaths: int = 0
    running: set[str] = field(default_factory=set)
    leased_ns: dict[str, int] = field(default_factory=dict)
    news: list[tuple[int, str]] = field(default_factory=list)
    """When the supervisor hears of the end of which session."""
    waiting: dict[str, int] = field(default_factory=dict)
    quarantined: dict[str, int] = field(default_factory=dict)
    """With the number of deaths until then."""

    def run(self, seconds: int) -> None:
        while self.now_ns < seconds * S:
            self.now_ns += S // 4
            self._live()
            if self._hear() or self.now_ns - self.looked_ns >= S:
                self._look()

    def _live(self) -> None:
        if self.now_ns < self.up_ns:
            return
        lost = {stream for _, stream in self.news}
        for stream in self.running - lost - self.leased_ns.keys():
            self.leased_ns[stream] = self.now_ns
        if any(
            self.now_ns - self.leased_ns[stream] >= delay_s * S
            for stream, delay_s in self.killers.items()
            if stream in self.leased_ns
        ):
            self.deaths += 1
            self.up_ns = self.now_ns + self.rng.randint(3, 6) * S
            for stream in self.leased_ns:
                self.news.append((self.now_ns + self.rng.randint(0, S), stream))
            self.leased_ns.clear()

    def _hear(self) -> bool:
        heard = sorted(each for each in self.news if each[0] <= self.now_ns)
        for at_ns, stream in heard:
            self.news.remove((at_ns, stream))
            self.running.discard(stream)
            self.waiting[stream] = self.now_ns + self.rng.randint(S // 2, 2 * S)
            self.suspicion.died(stream, now_ns=self.now_ns)
        return bool(heard)

    def _look(self) -> None:
        self.looked_ns = self.now_ns
        self.waiting = {s: at for s, at in self.waiting.items() if at > self.now_ns}
        self.suspicion.look(
            self.records, held=self.leased_ns, running=self.running, now_ns=self.now_ns
        )
        for stream in self.suspicion.convicts(now_ns=self.now_ns):
            self.quarantined.setdefault(stream, self.deaths)
            self.suspicion.quarantined(stream)
        decision = decide(
            [r for r in self.records if r.stream not in self.quarantined],
            held=self.leased_ns,
            running=self.running,
            waiting=self.waiting,
            max_sessions=64,
        )
        self.running |= set(
            self.suspicion.admit(decision.to_open, waiting=self.waiting, now_ns=self.now_ns)
        )


@settings(max_examples=40)
@given(
    innocents=st.integers(0, 6),
    # A death is heard of up to a second later, and must be by the end of a probation.
    delays=st.lists(st.floats(0, CONFIG.probation_s - 1), min_size=1, max_size=3),
    seed=st.integers(0, 10**6),
)
def test_all_guilty_are_found_and_no_innocent(
    innocents: int, delays: list[float], seed: int
) -> None:
    rng = random.Random(seed)
    killers = {f"killer{n}": delay_s for n, delay_s in enumerate(delays)}
    streams = [*killers, *(f"innocent{n}" for n in range(innocents))]
    rng.shuffle(streams)
    world = World(killers=killers, records=records(*streams), rng=rng)
    world.run(60 + 100 * len(killers))
    assert world.quarantined.keys() == killers.keys()
    # Each death is charged to somebody guilty, and no conviction needs more than this.
    assert world.deaths <= CONFIG.max_deaths * len(killers)
    assert world.running == {s for s in streams if s not in killers}


@settings(max_examples=20)
@given(delay_s=st.floats(4, 12), innocents=st.integers(1, 4), seed=st.integers(0, 10**6))
def test_a_slow_killer_is_found_too(delay_s: float, innocents: int, seed: int) -> None:
    rng = random.Random(seed)
    streams = ["killer", *(f"innocent{n}" for n in range(innocents))]
    rng.shuffle(streams)
    world = World(killers={"killer": delay_s}, records=records(*streams), rng=rng)
    world.run(300)
    assert world.quarantined == {"killer": CONFIG.max_deaths}


@pytest.mark.parametrize(
    "wrong", [{"max_deaths": 1}, {"probation_s": 21.0}, {"probation_s": 0.0}, {"quarantine_s": 0.0}]
)
def test_rules_that_cannot_work_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        SupervisorConfig(**wrong)  # type: ignore[arg-type]
