"""The model of docs/design/bundle-life.md: a Pipeline, its Bundles, and agents that hear of things late.

The rules under test decide; engine and agents are written out here as far as they matter. An agent acts on a copy of
its Bundle's status that is as old as chance will have it, which is what a watch gives a real one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random

from kardinal.promotion.api.bundle import EnvironmentStatus, IntentRequest
from kardinal.promotion.translation.environment_order import ancestors
from kardinal.promotion.translation.route import remaining
from kardinal_controller.bundles.contenders import Contender, Order, Standing
from kardinal_controller.bundles.progress import progress
from kardinal_controller.bundles.requests import Situation, answered
from kardinal_controller.bundles.supersession import settled

__all__ = ["Life", "ModelBundle", "ModelStep"]

START = datetime(2026, 3, 3, 10, 0, tzinfo=UTC)


@dataclass
class ModelStep:
    """A PromotionStep: `writing` from the first effect outside until it has landed or ended."""

    attempt: int | None = None
    state: str = "Pending"
    writing: bool = False
    prepared: datetime | None = None
    landed: datetime | None = None


@dataclass
class ModelBundle:
    """A Bundle with its steps; `heard` is what its agent knows of the entries."""

    number: int
    upstreams: Mapping[str, tuple[str, ...]]
    pinned: bool = False
    rolls_back: bool = False
    requests: dict[str, Order] = field(default_factory=dict)
    entries: dict[str, EnvironmentStatus] = field(default_factory=dict)
    heard: dict[str, EnvironmentStatus] = field(default_factory=dict)
    steps: dict[str, ModelStep] = field(default_factory=dict)
    nodes: set[str] = field(default_factory=set)
    """The environments that the Graph has a step for, made or to come."""
    has_graph: bool = True
    seen: tuple[object, ...] = ()
    """The facts of the latest run: without others, a run changes nothing."""
    changes: int = 0
    """How often it has changed for the others."""
    _known: tuple[Mapping[str, EnvironmentStatus], object, Contender] | None = None

    @property
    def name(self) -> str:
        return f"b{self.number:02}"

    @property
    def phase(self) -> str:
        return progress(self.entries, self.upstreams).phase

    @property
    def ended(self) -> bool:
        return self.phase in ("Verified", "Failed", "Superseded")

    def contender(self) -> Contender:
        """Return the Bundle as the others see it: the same object as long as nothing of it changes."""
        rest = (self.has_graph, len(self.requests))
        if self._known is None or self._known[0] is not self.entries or self._known[1] != rest:
            self._known = self.entries, rest, self._contender()
            self.changes += 1
        return self._known[2]

    def _contender(self) -> Contender:
        return Contender(
            self.name,
            (START, self.number),
            standings={name: Standing.of(entry) for name, entry in self.entries.items()},
            requests=dict(self.requests),
            pinned=self.pinned,
            rolls_back=self.rolls_back,
            has_graph=self.has_graph,
            read_upstreams=lambda: self.upstreams,
        )


class Life:
    """One history: `landings` has the numbers of the Bundles that landed in each environment, in order."""

    def __init__(self, random: Random, *, queue: bool, asks: bool = False, rollbacks: bool = False) -> None:
        self.random = random
        self.queue = queue
        self.asks = asks
        self.rollbacks = rollbacks
        self.last = 0
        self.now = START
        names = [f"e{number}" for number in range(random.randint(1, 5))]
        self.pipeline = {
            name: tuple(each for each in names[:i] if random.random() < 0.5) for i, name in enumerate(names)
        }
        self.gated = {name for name in names if random.random() < 0.4}
        self.bundles: list[ModelBundle] = []
        self.landings: dict[str, list[int]] = {name: [] for name in names}
        self.holds: dict[str, str] = {}
        self.broken: list[str] = []

    def go_on(self, actions: int) -> None:
        """Let random things happen."""
        for _ in range(actions):
            self.now += timedelta(seconds=1)
            if not self.bundles or (len(self.bundles) < 6 and self.random.random() < 0.08):
                self._create()
            bundle = self.random.choice(self.bundles)
            if self.asks and self.random.random() < 0.05:
                self._ask(bundle)
            if self.rollbacks and self.random.random() < 0.05:
                self._roll_back()
            self.random.choice((self._reconcile, self._hear, self._engine, self._agent, self._agent))(bundle)
            self._check()

    def settle(self) -> None:
        """Let all that is due happen, without another failure and with open gates."""
        for _ in range(400):
            before = self._picture()
            for bundle in self.bundles:
                for name in bundle.upstreams:
                    self._start(bundle, name)
                    self._act(bundle, name, luck=1.0)
                self._reconcile(bundle)
                self._hear(bundle)
                self._check()
            if self._picture() == before:
                return
            self.now += timedelta(seconds=1)
        self.broken.append("it never ends")

    def _picture(self) -> object:
        """Return all that can change."""
        return [
            (
                bundle.has_graph,
                dict(bundle.entries),
                bundle.heard,
                {name: replace(step) for name, step in bundle.steps.items()},
            )
            for bundle in self.bundles
        ]

    def _create(self) -> None:
        target = self.random.choice([None, *self.pipeline])
        wanted = {target, *ancestors(self.pipeline, target)} if target else set(self.pipeline)
        upstreams = {name: before for name, before in self.pipeline.items() if name in wanted}
        self.last += 1
        made = ModelBundle(self.last, upstreams, pinned=not self.rollbacks and self.random.random() < 0.1)
        made.entries = {name: EnvironmentStatus(state="Pending") for name in upstreams}
        made.nodes = set(upstreams)
        self.bundles.append(made)

    def _roll_back(self) -> None:
        """Let a person roll an environment back, which leaves a hold."""
        landed = [name for name, numbers in self.landings.items() if numbers]
        if not landed or sum(bundle.rolls_back for bundle in self.bundles) == 3:
            return
        name = self.random.choice(landed)
        self.last += 1
        made = ModelBundle(self.last, {name: ()}, rolls_back=True)
        made.entries = {name: EnvironmentStatus(state="Pending")}
        made.nodes = {name}
        self.bundles.append(made)
        self.holds[name] = made.name

    def resume(self) -> None:
        """End every hold; by now what it let through has ended."""
        waiting = [bundle.name for bundle in self.bundles if bundle.name in self.holds.values() and not bundle.ended]
        if waiting:
            self.broken.append(f"{waiting} wait for those that their holds keep back")
        self.holds.clear()

    def _ask(self, bundle: ModelBundle) -> None:
        """Let a person promote a Bundle or try it again, and the engine follow what the entries say then."""
        self._reconcile(bundle)
        self.last += 1
        request = IntentRequest(
            id=f"r{self.last}",
            action=self.random.choice(("promote", "retry")),
            environment=self.random.choice(list(bundle.upstreams)),
        )
        others = [other.contender() for other in self.bundles if other is not bundle]
        situation = Situation("p", bundle.upstreams, bundle.entries, others, bundle.contender())
        answer = answered([request], situation, first=(START, self.last), now=self.now)
        if answer.requests[0].state == "Refused":
            if answer.entries != bundle.entries:
                self.broken.append(f"{request} was refused and changes something")
            return
        bundle.requests[request.id] = (START, self.last)
        bundle.entries = answer.entries
        if not bundle.has_graph:
            bundle.steps.clear()
            bundle.has_graph = True
            bundle.nodes = set(remaining(bundle.upstreams, bundle.entries))
        bundle.nodes.update(remaining(bundle.upstreams, bundle.entries, there=bundle.nodes))
        for name, step in bundle.steps.items():
            if (bundle.entries[name].attempt or 1) > (step.attempt or 1):
                bundle.steps[name] = ModelStep(attempt=bundle.entries[name].attempt)

    def _hear(self, bundle: ModelBundle) -> None:
        bundle.heard = dict(bundle.entries)

    def _engine(self, bundle: ModelBundle) -> None:
        self._start(bundle, self.random.choice(list(bundle.upstreams)))

    def _agent(self, bundle: ModelBundle) -> None:
        if bundle.steps:
            self._act(bundle, self.random.choice(list(bundle.steps)), luck=0.85)

    def _reconcile(self, bundle: ModelBundle) -> None:
        facts = self._facts(bundle)
        if facts == bundle.seen:
            return
        bundle.seen = facts
        entries = {name: self._entry(bundle, name) for name in bundle.upstreams}
        verified = {name for name, entry in entries.items() if entry.state == "Verified"}
        coming = {
            name for name, before in bundle.upstreams.items() if name not in self.gated and verified.issuperset(before)
        }
        found = settled(
            bundle.contender().with_standings(entries),
            entries,
            [other.contender() for other in self.bundles if other is not bundle],
            started=bundle.steps,
            coming=coming if bundle.has_graph else (),
            queue=self.queue,
            now=self.now,
            held=self.holds,
        )
        if found != bundle.entries:
            bundle.entries = found
        for name, entry in bundle.entries.items():
            if entry.displaced_by is not None and entries[name].displaced_by is None:
                self._check_takeover(bundle, name, entry.displaced_by)
        admitted = [Standing.of(entry) for entry in bundle.entries.values() if entry.admitted_at is not None]
        at_rest = all(step.state in ("Verified", "Failed") for step in bundle.steps.values())
        if bundle.phase == "Superseded" and at_rest and all(each.landed or each.has_ended for each in admitted):
            bundle.has_graph = False

    def _facts(self, bundle: ModelBundle) -> tuple[object, ...]:
        """Return all that a run depends on, but for the time, which stamps what a run changes."""
        steps = [(name, each.attempt, each.state, each.prepared, each.landed) for name, each in bundle.steps.items()]
        others = [(each.contender().name, each.changes) for each in self.bundles]
        return (*steps, *others, *self.holds.items())

    def _entry(self, bundle: ModelBundle, name: str) -> EnvironmentStatus:
        before = bundle.entries[name]
        step = bundle.steps.get(name)
        if step is None or before.state == "Verified" or step.attempt != before.attempt:
            return before.model_copy(update={"message": None})
        update = {"state": step.state, "prepared_at": step.prepared, "promoted_at": step.landed, "message": None}
        return before.model_copy(update=update)

    def _start(self, bundle: ModelBundle, name: str) -> None:
        def is_verified(upstream: str) -> bool:
            step = bundle.steps.get(upstream)
            return step.state == "Verified" if step is not None else bundle.entries[upstream].state == "Verified"

        entry = bundle.entries[name]
        is_over = name not in bundle.nodes
        if (
            bundle.has_graph
            and name not in bundle.steps
            and not is_over
            and all(map(is_verified, bundle.upstreams[name]))
        ):
            bundle.steps[name] = ModelStep(attempt=entry.attempt)

    def _act(self, bundle: ModelBundle, name: str, *, luck: float) -> None:
        step = bundle.steps.get(name)
        known = bundle.heard.get(name)
        if step is None or step.state in ("Verified", "Failed"):
            return
        if known is None or known.attempt != step.attempt:
            known = EnvironmentStatus(state="Pending")
        if step.landed is not None:
            step.state = "Verified" if self.random.random() < luck else "Failed"
        elif known.displaced_by is not None:
            step.state = "Failed"
            step.writing = False
        elif step.writing:
            self._land(bundle, name, step)
        elif self.holds.get(name, bundle.name) != bundle.name:
            return
        elif self.random.random() > luck:
            step.state = "Failed"
        elif known.admitted_at is not None:
            step.state = "WaitingForMerge"
            step.writing = True
        else:
            step.state, step.prepared = "Promoting", step.prepared or self.now

    def _land(self, bundle: ModelBundle, name: str, step: ModelStep) -> None:
        step.state = "HealthChecking"
        step.writing = False
        step.landed = self.now
        # A pinned Bundle gives way to none, and goes after one that was asked for when it was under way.
        if not (self.asks and bundle.pinned):
            self.landings[name].append(int(bundle.contender().order_at(name)[1]))

    def _check(self) -> None:
        for name, landed in self.landings.items():
            writing = [bundle.name for bundle in self.bundles if name in bundle.steps and bundle.steps[name].writing]
            if len(writing) > 1:
                self.broken.append(f"{writing} write to {name} at once")
            if landed != sorted(landed):
                self.broken.append(f"{landed} landed in {name} out of order")

    def _check_takeover(self, bundle: ModelBundle, name: str, taker: str) -> None:
        by = next(other for other in self.bundles if other.name == taker)
        if bundle.pinned:
            self.broken.append(f"{bundle.name} is pinned and displaced")
        if self.queue and not by.rolls_back:
            self.broken.append(f"{bundle.name} is displaced in a queue")
        if self.holds.get(name) == bundle.name:
            self.broken.append(f"{bundle.name} is displaced in {name}, where a hold lets it alone through")
        if by.contender().order_at(name) < bundle.contender().order_at(name) or name not in by.upstreams:
            self.broken.append(f"{bundle.name} is displaced in {name} by {by.name}, which is older or goes elsewhere")
        theirs = by.steps.get(name)
        has_edit = theirs is not None and (theirs.prepared or theirs.writing or theirs.landed)
        # It may have had one when it was last seen.
        has_edit = has_edit or by.contender().landed_by(name) is not None or by.entries[name].state == "WaitingForMerge"
        if name in bundle.steps and not has_edit:
            self.broken.append(f"the step of {bundle.name} in {name} ends for {by.name}, which has no edit there")
