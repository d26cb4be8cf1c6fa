"""Stamp what the blueprint of an owner says: the reconciler of Workloads and of Deliverables.

What is to be done is decided by `realize.plan`; this does it, and writes the status once in the end if it differs. A
reconcile is caused by changes of the owner, its blueprint, a template of that, one of its objects, its account, or a
kind that it stamps; the events of its own writes are not among them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import starmap
from typing import Final

from pydantic import ValidationError

from kardinal.clock import Clock
from kardinal.objects import JsonObject, Key, ResourceType, key_of, labels_of
from kardinal.objects.naming import bounded
from kardinal.runtime import (
    Channel,
    Event,
    KeyMemory,
    Manager,
    Result,
    Source,
    TerminalError,
    Watch,
)
from kardinal.runtime.own_writes import OwnWrites
from kardinal.runtime.predicates import Predicate, changed, metadata_changed
from kardinal_supplychain.api.kinds import BLUEPRINT_OF, DELIVERABLE, WORKLOAD
from kardinal_supplychain.api.owners import Deliverable, Workload
from kardinal_supplychain.blueprints.select import OwnerSelector, judge, winners
from kardinal_supplychain.realize import conditions
from kardinal_supplychain.realize.bundle import LABEL_PIPELINE, is_bundle, sharing_owners
from kardinal_supplychain.realize.conditions import Finding, ready, words_of
from kardinal_supplychain.realize.owner_status import changes_of, owner_findings, resource_statuses, with_findings
from kardinal_supplychain.realize.plan import (
    Action,
    ApplyObject,
    Kind,
    LookUpKind,
    Realization,
    RenderYtt,
    StampRefusal,
)
from kardinal_supplychain.realize.readiness import template_names
from kardinal_supplychain.realize.resource_state import qualified
from kardinal_supplychain.realize.runs import LABEL_RESOURCE, is_run_of
from kardinal_supplychain.realize.stamp import StampError
from kardinal_supplychain.reconcilers.accounts import AccountError, Accounts, StampingAccount, account_of
from kardinal_supplychain.reconcilers.applier import StampApplier, Written
from kardinal_supplychain.reconcilers.definitions import AnyBlueprint, Definitions
from kardinal_supplychain.reconcilers.departures import Departures
from kardinal_supplychain.reconcilers.kinds import BY_CONTROLLER, StampedKinds, UnreadObjects, controller_uids
from kardinal_supplychain.reconcilers.orphanage import Orphanage
from kardinal_supplychain.reconcilers.uses import Uses
from kardinal_supplychain.ytt import Ytt

__all__ = ["OwnerReconciler"]

STAMPED: Final = LABEL_RESOURCE
"""The label of every object that is stamped for a resource of a blueprint."""
CONCURRENT_ACTIONS: Final = 8
"""The most actions that one reconcile carries out at once."""

_ACTIONS_OF_RESOURCE: Final = 3
"""The most actions of one resource, one after another: a template is rendered, a kind looked up, an object applied."""
_SHORTEST_WAIT: Final = timedelta(seconds=1)
_RENDER_AGAIN: Final = timedelta(seconds=10)
"""After this time ytt is asked again, if it failed for a reason outside of the template."""

_spec_changed = metadata_changed("uid", "generation")
_initial = Predicate(lambda event: event.initial)

_MODELS: Final[dict[str, type[Workload] | type[Deliverable]]] = {WORKLOAD.kind: Workload, DELIVERABLE.kind: Deliverable}
_REFERENCE: Final = {WORKLOAD.kind: "supplyChainRef", DELIVERABLE.kind: "deliveryRef"}
_BY_UID: Final = "uid"
_BY_LABEL: Final = "label"

Definition = tuple[str, str]
"""Kind and name of a blueprint or a template."""


class OwnerReconciler:
    """Reconcile the owners of one kind."""

    def __init__(
        self,
        resource: ResourceType,
        manager: Manager,
        *,
        definitions: Definitions,
        ytt: Ytt,
    ) -> None:
        self._resource = resource
        self._blueprints = BLUEPRINT_OF[resource.kind]
        self._words = words_of(resource.kind)
        self._definitions = definitions
        self._owners = manager.informer(resource)
        self._all_owners = [manager.informer(each) for each in (WORKLOAD, DELIVERABLE)]
        self._owners.index(_BY_UID, lambda obj: (obj["metadata"]["uid"],))
        self._owners.index(_BY_LABEL, lambda obj: starmap(_pair, labels_of(obj).items()))
        self._status = manager.status
        self._recorder = manager.recorder
        self._clock = manager.clock
        self.memory = KeyMemory(self._owners)
        self._woken = Channel()
        self._own = OwnWrites[Written](self.memory, push=self._woken.push)
        self._uses: Uses[Definition] = Uses(self.memory)
        self._wanted: Uses[Written] = Uses(self.memory)
        self._applier = StampApplier(manager.client, clock=manager.clock, memory=self.memory, own=self._own)
        self._kinds = StampedKinds(
            manager.client,
            manager.dynamic,
            clock=manager.clock,
            labels=STAMPED,
            memory=self.memory,
            moved=self._moved,
            push=self._woken.push,
        )
        self._accounts = Accounts(manager.dynamic, memory=self.memory, push=self._rights_changed)
        self._departures = Departures(self.memory)
        self._orphanage = Orphanage(manager, memory=self.memory)
        self._tools = _Tools(
            kinds=self._kinds,
            applier=self._applier,
            accounts=self._accounts,
            departures=self._departures,
            ytt=ytt,
            clock=manager.clock,
            rendered=self.memory.map(),
        )
        manager.add(self._kinds)
        manager.add(self._accounts)

    def sources(self) -> Sequence[Source]:
        """Return what causes a reconcile of an owner."""
        return (
            Watch(self._owners, when=changed(_without_status)),
            # At the start, each owner is reconciled anyway.
            Watch(self._definitions.blueprints[self._blueprints], self._selected, when=_spec_changed & ~_initial),
            *(
                Watch(each, self._users_of, when=_spec_changed & ~_initial)
                for each in self._definitions.templates.values()
            ),
            self._woken,
        )

    async def reconcile(self, key: Key) -> Result:
        owner = self._owners.get(*key)
        if owner is None or "deletionTimestamp" in owner["metadata"]:
            return Result()
        try:
            spec = _MODELS[self._resource.kind].model_validate(owner).spec
        except ValidationError as error:
            raise TerminalError(f"it cannot be read: {error.error_count()} fields are wrong") from None
        matching = self._matching(owner)
        self._uses.note(key, {name for blueprint in matching for name in _definitions_in(blueprint)})
        if len(matching) != 1:
            none = conditions.not_matched(self._words, labels_of(owner))
            return await self._rest(owner, conditions.matched_several(self._words) if matching else none)
        [blueprint] = matching
        reference = {_REFERENCE[owner["kind"]]: {"kind": self._blueprints.kind, "name": blueprint.metadata.name}}
        readiness = self._definitions.findings(blueprint)[-1]
        if readiness.status != "True":
            not_ready = replace(readiness, type=self._words.ready_type, status="False")
            return await self._rest(owner, not_ready, **reference)
        found = Finding(self._words.ready_type, "True", "Ready")
        try:
            account = account_of(key.namespace, spec.service_account_name, blueprint.spec.service_account_ref)
            self._accounts.require(key, account)
        except AccountError as error:
            refused = Finding("ResourcesSubmitted", "False", "ServiceAccountError", str(error))
            return await self._rest(owner, found, refused, **reference)
        realization = Realization(owner, spec, blueprint, find=self._definitions.template)
        return await self._realize(realization, _Run(self._tools, owner, account), reference)

    async def _realize(self, realization: Realization, run: _Run, reference: JsonObject) -> Result:
        owner = realization.owner
        for _ in range(1 + _ACTIONS_OF_RESOURCE * len(realization.order)):
            plan = realization.plan(run)
            if not plan.actions:
                break
            await run.carry_out(plan.actions)
        else:
            raise RuntimeError(f"{owner['kind']} {key_of(owner)}: the plan does not come to an end")
        orphans = await self._orphanage.clear(owner, plan.states, run)
        run.keep(realization.order)
        self._wanted.note(run.key, run.wanted)
        before = (owner.get("status") or {}).get("resources") or ()
        now = self._clock.now()
        resources = resource_statuses(plan.states, before, now=now)
        status = with_findings(
            owner, owner_findings(self._words, resources), now=now, **reference, resources=resources, orphans=orphans
        )
        await self._status.write(self._resource, owner, status)
        self._departures.forget(run.key, run.departed)
        for reason, note in (*run.events, *changes_of(plan.states, before, resources)):
            self._recorder.event(owner, reason=reason, note=note)
        for type_, bundle in run.posted:
            self._warn_of_others(owner, type_, bundle)
        return Result(requeue_after=max(min(run.due) - now, _SHORTEST_WAIT) if run.due else None)

    def _warn_of_others(self, owner: JsonObject, type_: ResourceType, bundle: JsonObject) -> None:
        """Say which other owners create Bundles for the same Pipeline."""
        informer = self._kinds.informer(type_)
        namespace = owner["metadata"]["namespace"]
        owners = [each for kind in self._all_owners for each in kind.list(namespace)]
        bundles = informer.list(namespace) if informer is not None else ()
        others = sharing_owners(bundle, owner=owner, owners=owners, bundles=bundles)
        if others:
            pipeline = bundle["metadata"]["labels"][LABEL_PIPELINE]
            note = f"{', '.join(others)} also creates Bundles for Pipeline {pipeline}: they supersede each other"
            self._recorder.event(owner, type="Warning", reason="SharedPipeline", note=note)

    async def _rest(self, owner: JsonObject, *findings: Finding, **fields: JsonObject) -> Result:
        """Write that nothing is done for an owner; its objects stay, and so do their entries in the status."""
        key = key_of(owner)
        self._kinds.keep(key, ())
        self._accounts.stop_awaiting_rights(key)
        self._wanted.note(key, ())
        status = with_findings(owner, [*findings, ready(findings)], now=self._clock.now(), **fields)
        await self._status.write(self._resource, owner, status)
        return Result()

    def _matching(self, owner: JsonObject) -> list[AnyBlueprint]:
        """Return the blueprints that win for an owner: one, several in a tie, or none."""
        blueprints = list(self._definitions.all_blueprints(self._blueprints))
        verdicts = [judge(OwnerSelector.of_blueprint(each.spec), owner) for each in blueprints]
        return [blueprints[index] for index in winners(verdicts)]

    # What wakes an owner.

    def _selected(self, blueprint: JsonObject) -> Iterable[Key]:
        """Return the owners that use a blueprint, or that it selects."""
        name = blueprint["metadata"]["name"]
        selected = set(self._uses.users((self._blueprints.kind, name)))
        if (found := self._definitions.read_blueprint(self._blueprints, blueprint)) is not None:
            selector = OwnerSelector.of_blueprint(found.spec)
            label = next(iter(selector.labels.items()), None)
            owners = self._owners.by_index(_BY_LABEL, _pair(*label)) if label is not None else self._owners.list()
            selected |= {key_of(owner) for owner in owners if judge(selector, owner).score}
        return sorted(selected)

    def _users_of(self, template: JsonObject) -> Iterable[Key]:
        return sorted(self._uses.users((template["kind"], template["metadata"]["name"])))

    def _moved(self, type_: ResourceType, event: Event) -> None:
        """Wake the owner of an object that changed; only the uid of its controller says which that is."""
        states = [obj for obj in (event.old, event.new) if obj is not None]
        uids = [list(controller_uids(obj)) for obj in states]
        written: Written = (type_, *event.key)
        owners = {key_of(owner) for each in uids for uid in each for owner in self._owners.by_index(_BY_UID, uid)}
        if not any(uids):
            # A Bundle, which has no controller.
            owners |= self._wanted.users(written)
        for owner in owners:
            self._departures.note(owner, type_, event)
        if event.new is not None:
            revision = int(event.new["metadata"]["resourceVersion"])
            owners = {owner for owner in owners if not self._own.is_own(owner, written, revision)}
        if event.new is None or uids[0] != uids[-1]:
            # An owner that was refused because the object had another controller.
            owners |= self._wanted.users(written)
        for owner in owners:
            self._woken.push(owner)

    def _rights_changed(self, owner: Key) -> None:
        self._applier.retry(owner)
        self._woken.push(owner)


@dataclass(frozen=True, slots=True)
class _Tools:
    """The parts of a reconciler that one reconcile uses."""

    kinds: StampedKinds
    applier: StampApplier
    accounts: Accounts
    departures: Departures
    ytt: Ytt
    clock: Clock
    rendered: dict[Key, dict[str, JsonObject | StampError]]


class _Run:
    """One reconcile of an owner; implements `StampObservation`.

    `due`: when to reconcile again without an event. `wanted`: the objects that were looked for. `posted`: Bundles that
    were created.
    """

    def __init__(self, tools: _Tools, owner: JsonObject, account: StampingAccount) -> None:
        self.key = key_of(owner)
        self.account = account
        self.events: list[tuple[str, str]] = []
        self.posted: list[tuple[ResourceType, JsonObject]] = []
        self.due: list[datetime] = []
        self.wanted: set[Written] = set()
        self.departed = list(tools.departures.of(self.key))
        """The removed objects that the status accounts for."""
        self._tools = tools
        self._uid: str = owner["metadata"]["uid"]
        self._kinds: dict[Kind, ResourceType | StampRefusal] = {}
        self._rendered = tools.rendered.setdefault(self.key, {})
        self._used_renders: set[str] = set()
        self._answers: dict[Written, JsonObject] = {}
        self._uids: set[str] = set()
        self._lacks_rights = False

    def kind(self, kind: Kind) -> ResourceType | StampRefusal | None:
        return self._kinds.get(kind)

    def rendered(self, render: RenderYtt) -> JsonObject | StampError | None:
        digest = render.digest
        self._used_renders.add(digest)
        return self._rendered.get(digest)

    def live(self, type_: ResourceType, name: str) -> JsonObject | None:
        written: Written = (type_, self.key.namespace, name)
        self.wanted.add(written)
        informer = self._tools.kinds.informer(type_)
        found = self._answers.get(written)
        if found is None and informer is not None:
            found = informer.get(self.key.namespace, name)
        if found is not None:
            self._uids.add(found["metadata"]["uid"])
        return found

    def runs(self, type_: ResourceType, resource: str) -> Sequence[JsonObject]:
        return [obj for obj in self.owned(type_) if is_run_of(obj, resource)]

    def removed(self, type_: ResourceType, resource: str) -> Sequence[JsonObject]:
        # Those of this moment, as `runs` has the live ones of this moment: an object may go during the reconcile.
        gone = [
            (each, obj)
            for each, obj in self._tools.departures.of(self.key)
            if each == type_ and self._uid in controller_uids(obj) and labels_of(obj).get(STAMPED) == bounded(resource)
        ]
        self.departed += gone
        return [obj for _, obj in gone]

    def owned(self, type_: ResourceType) -> Sequence[JsonObject]:
        """Return the objects of a kind that the owner controls, with the answers to what was just applied."""
        informer = self._tools.kinds.informer(type_)
        found = (
            {key_of(obj): obj for obj in informer.by_index(BY_CONTROLLER, self._uid)} if informer is not None else {}
        )
        found |= {key_of(obj): obj for (each, *_), obj in self._answers.items() if each == type_}
        return [
            obj
            for key, obj in found.items()
            if key.namespace == self.key.namespace and self._uid in controller_uids(obj)
        ]

    async def look_up(self, kind: Kind) -> None:
        """Watch a kind that the templates do not need, because objects of it may have been stamped before."""
        if kind not in self._kinds:
            with suppress(UnreadObjects):
                self._kinds[kind] = await self._tools.kinds.look_up(self.key, kind)

    @property
    def types(self) -> Sequence[ResourceType]:
        """The kinds whose objects were looked at."""
        return [found for found in self._kinds.values() if isinstance(found, ResourceType) and found.namespaced]

    def is_settled(self, live: JsonObject, desired: JsonObject) -> bool:
        if self._tools.applier.is_settled(self.key, live, desired):
            return True
        pause = self._tools.applier.pause_of(self.key, live)
        if pause is not None:
            self.due.append(pause)
        return pause is not None

    def refusal(self, apply: ApplyObject) -> StampRefusal | None:
        refused = self._tools.applier.refused(self.key, apply)
        if refused is None:
            return None
        self.due.append(refused.retry_at)
        self._lacks_rights |= refused.by_rights
        return refused.refusal

    async def carry_out(self, actions: Sequence[Action]) -> None:
        """Carry actions out, several at once. Raises the first error after all of them."""
        slots = asyncio.Semaphore(CONCURRENT_ACTIONS)

        async def carry_out(action: Action) -> None:
            async with slots:
                await self._carry_out(action)

        for outcome in await asyncio.gather(*map(carry_out, actions), return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _carry_out(self, action: Action) -> None:
        match action:
            case LookUpKind(kind):
                self._kinds[kind] = await self._tools.kinds.look_up(self.key, kind)
            case RenderYtt():
                try:
                    answer: JsonObject | StampError = await self._tools.ytt.render(
                        action.template, action.values, namespace=self.key.namespace
                    )
                except StampError as error:
                    answer = error
                self._rendered[action.digest] = answer
            case ApplyObject():
                await self._apply(action)

    async def _apply(self, apply: ApplyObject) -> None:
        live = await self._tools.applier.apply(self.key, self.account, apply)
        if live is None:
            return
        metadata = live["metadata"]
        self._answers[apply.type, self.key.namespace, metadata["name"]] = live
        if is_bundle(live):
            self.posted.append((apply.type, live))
        if apply.live is None or apply.live["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            done = "Created" if apply.live is None else "Patched"
            self.events.append(("StampedObjectApplied", f"{done} object [{qualified(apply.type, metadata['name'])}]"))

    def keep(self, resources: Sequence[str]) -> None:
        """Watch and remember what the owner needs from now on, and nothing else."""
        tools = self._tools
        tools.kinds.keep(self.key, self._kinds.keys())
        tools.applier.keep(self.key, resources=resources, uids=self._uids)
        for digest in self._rendered.keys() - self._used_renders:
            del self._rendered[digest]
        for digest, answer in list(self._rendered.items()):
            if isinstance(answer, StampError) and answer.transient:
                pause = timedelta(seconds=answer.retry_after) if answer.retry_after else _RENDER_AGAIN
                self.due.append(tools.clock.now() + pause)
                del self._rendered[digest]
        if self._lacks_rights:
            tools.accounts.await_rights(self.key, self.account)
        else:
            tools.accounts.stop_awaiting_rights(self.key)


def _without_status(owner: JsonObject) -> object:
    metadata = {
        name: value for name, value in owner["metadata"].items() if name not in ("resourceVersion", "managedFields")
    }
    return metadata, owner.get("spec")


def _definitions_in(blueprint: AnyBlueprint) -> Iterable[Definition]:
    """Return a blueprint and its templates by kind and name."""
    return ((blueprint.resource.kind, blueprint.metadata.name), *template_names(blueprint))


def _pair(key: str, value: str) -> str:
    return f"{key}={value}"
