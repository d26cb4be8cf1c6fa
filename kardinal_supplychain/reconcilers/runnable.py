"""Stamp the runs of Runnables: a new object for each change of what their ClusterRunTemplate renders.

Which run is kept and when a new one is made is decided by `realize.runs`. A reconcile is caused by changes of the
Runnable, its template, its runs, the object that it selects, its account, or a kind that it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from pydantic import ValidationError

from kardinal.kube import Forbidden, KubeError, Unauthorized
from kardinal.kube.selectors import matches
from kardinal.objects import SECRET, JsonObject, Key, ResourceType, key_of
from kardinal.objects.errors import KardinalError
from kardinal.objects.text import cut
from kardinal.runtime import (
    Channel,
    DynamicInformers,
    Event,
    Handle,
    KeyMemory,
    Manager,
    Result,
    Source,
    TerminalError,
    Watch,
)
from kardinal.runtime.own_writes import OwnWrites
from kardinal.runtime.predicates import Predicate, changed, metadata_changed
from kardinal_supplychain.api.kinds import CLUSTER_RUN_TEMPLATE, GROUP, RUNNABLE
from kardinal_supplychain.api.runs import ClusterRunTemplate, RunnableObject, RunnableSelector, RunTemplateSpec
from kardinal_supplychain.api.status import LastRun
from kardinal_supplychain.blueprints.owner import owner_document
from kardinal_supplychain.realize import runnable as said
from kardinal_supplychain.realize.bundle import is_bundle
from kardinal_supplychain.realize.conditions import Finding
from kardinal_supplychain.realize.owner_status import stamped_reference, with_findings
from kardinal_supplychain.realize.plan import ApplyObject, Kind, StampRefusal
from kardinal_supplychain.realize.resource_state import ResourceState, plural_of, qualified
from kardinal_supplychain.realize.retention import surplus_runs
from kardinal_supplychain.realize.runs import StampedRun, noted_run, plan_run, runs_of, source_of_outputs
from kardinal_supplychain.realize.stamp import RunnablePlace, StampError, render_body, stamp_object
from kardinal_supplychain.reconcilers.accounts import AccountError, Accounts, StampingAccount, account_of
from kardinal_supplychain.reconcilers.applier import StampApplier, Written
from kardinal_supplychain.reconcilers.departures import Departures
from kardinal_supplychain.reconcilers.kinds import BY_CONTROLLER, StampedKinds, UnreadObjects, controller_uids
from kardinal_supplychain.reconcilers.orphanage import Orphanage
from kardinal_supplychain.reconcilers.uses import Uses

__all__ = ["RunnableReconciler"]

RUN_LABEL: Final = f"{GROUP}/runnable-name"
"""The label of every run of a Runnable."""

_RUN: Final = "run"
"""The name under which refusals of the one object of a Runnable are remembered."""
_BY_UID: Final = "uid"
_SHORTEST_WAIT: Final = timedelta(seconds=1)
_SELECT_AGAIN: Final = timedelta(minutes=1)
"""After this time a selector is evaluated again, if the program may not watch the kind that it selects."""
_MESSAGE_LIMIT: Final = 512

_spec_changed = metadata_changed("uid", "generation")
_initial = Predicate(lambda event: event.initial)


class _Failed(KardinalError):
    """A condition RunTemplateReady that is not True: no run is made, and the runs that there are stay as they are."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


@dataclass(slots=True)
class _Pass:
    """One reconcile of a Runnable. `due`: when to reconcile again without an event."""

    key: Key
    account: StampingAccount
    runnable: JsonObject
    spec: RunnableObject
    kinds: list[Kind] = field(default_factory=list)
    due: list[datetime] = field(default_factory=list)
    lacks_rights: bool = False
    is_confidential: bool = False

    @property
    def template(self) -> str:
        return self.spec.spec.run_template_ref.name


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The runs of a Runnable after a reconcile, the newest first, and what its conditions say of its template."""

    template: Finding
    type: ResourceType
    runs: list[StampedRun]
    outputs: JsonObject
    last: LastRun | None
    newest: StampedRun | None


class RunnableReconciler:
    """Reconcile Runnables."""

    def __init__(self, manager: Manager) -> None:
        self._client = manager.client
        self._runnables = manager.informer(RUNNABLE)
        self._runnables.index(_BY_UID, lambda obj: (obj["metadata"]["uid"],))
        self._templates = manager.informer(CLUSTER_RUN_TEMPLATE)
        self._status = manager.status
        self._recorder = manager.recorder
        self._clock = manager.clock
        self.memory = KeyMemory(self._runnables)
        self._woken = Channel()
        self._own = OwnWrites[Written](self.memory, push=self._woken.push)
        self._uses: Uses[str] = Uses(self.memory)
        self._applier = StampApplier(manager.client, clock=manager.clock, memory=self.memory, own=self._own)
        self._orphanage = Orphanage(manager, memory=self.memory)
        self._departures = Departures(self.memory)
        self._selections = _Selections(manager.dynamic, memory=self.memory, woken=self._woken)
        self._kinds = StampedKinds(
            manager.client,
            manager.dynamic,
            clock=manager.clock,
            labels=RUN_LABEL,
            memory=self.memory,
            moved=self._moved,
            push=self._woken.push,
        )
        self._accounts = Accounts(manager.dynamic, memory=self.memory, push=self._rights_changed)
        manager.add(self._kinds)
        manager.add(self._accounts)
        manager.add(self._selections)

    def sources(self) -> Sequence[Source]:
        """Return what causes a reconcile of a Runnable."""
        return (
            Watch(self._runnables, when=changed(owner_document)),
            Watch(self._templates, self._users_of, when=_spec_changed & ~_initial),
            self._woken,
        )

    async def reconcile(self, key: Key) -> Result:
        runnable = self._runnables.get(*key)
        if runnable is None or "deletionTimestamp" in runnable["metadata"]:
            return Result()
        try:
            spec = RunnableObject.model_validate(runnable)
        except ValidationError as error:
            raise TerminalError(f"it cannot be read: {error.error_count()} fields are wrong") from None
        self._uses.note(key, [spec.spec.run_template_ref.name])
        try:
            account = account_of(key.namespace, spec.spec.service_account_name, None)
            self._accounts.require(key, account)
        except AccountError as error:
            return await self._write(runnable, said.account_failed(str(error)))
        this = _Pass(key, account, runnable, spec)
        departed = list(self._departures.of(key))
        try:
            outcome = await self._realize(this, departed)
        except _Failed as failed:
            self._keep(this)
            result = await self._write(runnable, said.runnable_findings(failed.finding, None, None), due=this.due)
            self._departures.forget(key, departed)
            return result
        orphans = await self._retire(this, outcome)
        self._keep(this)
        findings = said.runnable_findings(outcome.template, outcome.newest, outcome.last)
        fields: JsonObject = {"orphans": orphans, "outputs": outcome.outputs or None}
        fields["lastRun"] = outcome.last.to_json() if outcome.last is not None else None
        if outcome.newest is not None:
            fields["stampedRef"] = stamped_reference(outcome.type, outcome.newest.object)
        result = await self._write(runnable, findings, due=this.due, **fields)
        self._departures.forget(key, departed)
        return result

    async def _realize(self, this: _Pass, departed: list[tuple[ResourceType, JsonObject]]) -> _Outcome:
        """Make a run if one is due, and read the outputs. Raises `_Failed`.

        The removed runs that the status will account for are added to `departed`.
        """
        template = self._template(this)
        selected = await self._selected(this)
        stamped = self._stamped(this, template, selected)
        type_ = await self._type_of(this, stamped)
        last = this.spec.status.last_run
        uid = this.runnable["metadata"]["uid"]
        informer = self._kinds.informer(type_)
        live = informer.by_index(BY_CONTROLLER, uid) if informer is not None else []
        # Those of this moment, as `live` are: a run may have gone since the reconcile began.
        departed += self._departures.of(this.key)
        gone = [obj for each, obj in self._departures.of(this.key) if each == type_ and uid in controller_uids(obj)]
        finished = [obj for obj in gone if StampedRun(obj, said.judge_run(obj), 0, "").outcome != "unfinished"]
        runs = runs_of([*live, *finished], last, said.judge_run)
        plan = plan_run(stamped, runs, last)
        if plan.create is not None:
            runs = runs_of([*live, *finished, await self._created(this, type_, plan.create)], last, said.judge_run)
        source = source_of_outputs(runs, last)
        outputs = (this.runnable.get("status") or {}).get("outputs") or {}
        finding = said.run_template_ready()
        if source is not None and template.outputs:
            try:
                outputs = self._outputs(this, template, source)
            except said.RunOutputMissing as error:
                finding = said.output_missing(str(error), this.template, source.object, plural_of(type_))
                source = None
        last = noted_run(runs, last, outputs_of=source)
        newest = runs[0] if runs and last is not None and runs[0].uid == last.uid else None
        return _Outcome(finding, type_, [run for run in runs if run.object not in finished], outputs, last, newest)

    def _template(self, this: _Pass) -> RunTemplateSpec:
        obj = self._templates.get(None, this.template)
        if obj is None:
            raise _Failed(said.run_template_not_found(this.template))
        try:
            return ClusterRunTemplate.model_validate(obj).spec
        except ValidationError as error:
            raise _Failed(said.run_stamp_failure(f"{error.error_count()} fields are wrong", this.template)) from None

    async def _selected(self, this: _Pass) -> JsonObject | None:
        """Return the one object that the selector of a Runnable selects, read as its account."""
        selector = this.spec.spec.selector
        if selector is None:
            self._selections.stop_for(this.key)
            return None
        kind = Kind(selector.resource.api_version, selector.resource.kind)
        this.kinds.append(kind)
        type_ = await self._kinds.find(this.key, kind)
        if isinstance(type_, StampRefusal):
            raise _Failed(said.selector_failed(type_.message, selector))
        this.is_confidential |= (type_.group, type_.kind) == (SECRET.group, SECRET.kind)
        if not self._selections.watch(this.key, type_, selector):
            this.due.append(self._clock.now() + _SELECT_AGAIN)
        return await self._read_selected(this, type_, selector)

    async def _read_selected(self, this: _Pass, type_: ResourceType, selector: RunnableSelector) -> JsonObject:
        client = self._client.as_user(this.account.user)
        namespace = this.key.namespace if type_.namespaced else None
        try:
            found = (await client.list(type_, namespace, labels=_labels_of(selector), limit=2)).items
        except (Forbidden, Unauthorized) as error:
            this.lacks_rights = True
            raise _Failed(said.selector_failed(cut(str(error), _MESSAGE_LIMIT), selector)) from None
        except KubeError as error:
            if error.transient:
                raise
            raise _Failed(said.selector_failed(cut(str(error), _MESSAGE_LIMIT), selector)) from None
        if len(found) != 1:
            message = "selector matched multiple objects" if found else "selector did not match any objects"
            raise _Failed(said.selector_failed(message, selector))
        return found[0]

    def _stamped(self, this: _Pass, template: RunTemplateSpec, selected: JsonObject | None) -> JsonObject:
        try:
            rendered = render_body(template.template, said.run_context(this.runnable, selected))
            if is_bundle(rendered):
                remedy = "Stamp it by a ClusterTemplate of the blueprint"
                raise StampError("a Runnable makes no Bundle, which would be deleted with it", remedy=remedy)
            place = RunnablePlace(this.template)
            inputs = this.spec.spec.inputs
            return stamp_object(rendered, owner=this.runnable, place=place, inputs=inputs)
        except StampError as error:
            raise _Failed(said.run_stamp_failure(str(error), this.template)) from None

    async def _type_of(self, this: _Pass, stamped: JsonObject) -> ResourceType:
        kind = Kind(stamped["apiVersion"], stamped["kind"])
        this.kinds.append(kind)
        type_ = await self._kinds.look_up(this.key, kind)
        if isinstance(type_, StampRefusal):
            raise _Failed(self._refused(this, stamped, type_))
        if not type_.namespaced:
            message = f"a {kind.kind} is cluster-scoped, and a Runnable cannot own it"
            raise _Failed(said.run_stamp_failure(message, this.template))
        this.is_confidential |= (type_.group, type_.kind) == (SECRET.group, SECRET.kind)
        return type_

    async def _created(self, this: _Pass, type_: ResourceType, run: JsonObject) -> JsonObject:
        create = ApplyObject(
            resource=_RUN, type=type_, object=run, live=None, is_confidential=this.is_confidential, is_run=True
        )
        refused = self._applier.refused(this.key, create)
        live = await self._applier.apply(this.key, this.account, create) if refused is None else None
        if live is None:
            raise _Failed(self._rejected(this, create))
        note = f"Created object [{qualified(type_, live['metadata']['name'])}]"
        self._recorder.event(this.runnable, reason="StampedObjectApplied", note=note)
        return live

    def _rejected(self, this: _Pass, create: ApplyObject) -> Finding:
        """Return the condition of a run that was refused, and note when to try again."""
        refused = self._applier.refused(this.key, create)
        if refused is None:
            return said.run_rejected("it was refused", this.template, create.object)
        this.due.append(refused.retry_at)
        this.lacks_rights |= refused.by_rights
        return self._refused(this, create.object, refused.refusal)

    @staticmethod
    def _refused(this: _Pass, stamped: JsonObject, refusal: StampRefusal) -> Finding:
        finding = said.run_rejected(refusal.message, this.template, stamped)
        return replace(finding, reason=refusal.reason) if refusal.reason == "WatchForbidden" else finding

    @staticmethod
    def _outputs(this: _Pass, template: RunTemplateSpec, source: StampedRun) -> JsonObject:
        if this.is_confidential:
            raise said.RunOutputMissing("values of a Secret are written into no status")
        return said.read_run_outputs(template.outputs, source.object)

    async def _retire(self, this: _Pass, outcome: _Outcome) -> list[JsonObject] | None:
        """Delete the runs that are not kept, and those of an earlier kind; return the latter that are still there."""
        outputs_of = outcome.last.outputs_of if outcome.last is not None else 0
        state = ResourceState(
            name=_RUN,
            submitted=outcome.template,
            type=outcome.type,
            runs=[run.name for run in outcome.runs],
            surplus=surplus_runs(outcome.runs, this.spec.spec.retention_policy, outputs_of=outputs_of),
        )
        owned = _OwnedRuns(this, outcome.type, self._kinds)
        if (before := this.spec.status.stamped_ref) is not None:
            await owned.look_up(Kind(before.api_version, before.kind))
        return await self._orphanage.clear(this.runnable, [state], owned)

    def _keep(self, this: _Pass) -> None:
        """Watch and remember what a Runnable needs from now on, and nothing else."""
        self._kinds.keep(this.key, this.kinds)
        if this.lacks_rights:
            self._accounts.await_rights(this.key, this.account)
        else:
            self._accounts.stop_awaiting_rights(this.key)

    async def _write(
        self, runnable: JsonObject, findings: Sequence[Finding], *, due: Sequence[datetime] = (), **fields: Any
    ) -> Result:
        now = self._clock.now()
        await self._status.write(RUNNABLE, runnable, with_findings(runnable, findings, now=now, **fields))
        return Result(requeue_after=max(min(due) - now, _SHORTEST_WAIT) if due else None)

    # What wakes a Runnable.

    def _users_of(self, template: JsonObject) -> Iterable[Key]:
        return sorted(self._uses.users(template["metadata"]["name"]))

    def _moved(self, type_: ResourceType, event: Event) -> None:
        """Wake the Runnable of a run that changed; only the uid of its controller says which that is."""
        states = [obj for obj in (event.old, event.new) if obj is not None]
        uids = {uid for obj in states for uid in controller_uids(obj)}
        for runnable in {key_of(obj) for uid in uids for obj in self._runnables.by_index(_BY_UID, uid)}:
            self._departures.note(runnable, type_, event)
            revision = int(event.new["metadata"]["resourceVersion"]) if event.new is not None else None
            if revision is None or not self._own.is_own(runnable, (type_, *event.key), revision):
                self._woken.push(runnable)

    def _rights_changed(self, runnable: Key) -> None:
        self._applier.retry(runnable)
        self._woken.push(runnable)


class _OwnedRuns:
    """The runs that a Runnable controls, of all kinds that it is known to have stamped; implements `OwnedObjects`."""

    def __init__(self, this: _Pass, type_: ResourceType, kinds: StampedKinds) -> None:
        self.key = this.key
        self.account = this.account
        self.due = this.due
        self._this = this
        self._kinds = kinds
        self._types = {type_}

    @property
    def types(self) -> Sequence[ResourceType]:
        return list(self._types)

    def owned(self, type_: ResourceType) -> Sequence[JsonObject]:
        informer = self._kinds.informer(type_)
        return informer.by_index(BY_CONTROLLER, self._this.runnable["metadata"]["uid"]) if informer is not None else []

    async def look_up(self, kind: Kind) -> None:
        """Watch a kind that the template does not stamp any more, until its runs are deleted."""
        self._this.kinds.append(kind)
        with suppress(UnreadObjects):
            found = await self._kinds.look_up(self.key, kind)
            if isinstance(found, ResourceType) and found.namespaced:
                self._types.add(found)


class _Selections:
    """The objects that Runnables select, watched with the rights of the program: a change wakes the Runnable.

    All Runnables of a namespace that select one kind share a watch, so that selectors cost no connections.
    """

    def __init__(self, dynamic: DynamicInformers, *, memory: KeyMemory, woken: Channel) -> None:
        self._dynamic = dynamic
        self._woken = woken
        self._handles: dict[Key, tuple[ResourceType, str, Handle]] = {}
        memory.on_drop(self.stop_for)

    async def start(self) -> None:
        """Nothing has to be started."""

    async def stop(self) -> None:
        """Close all watches."""
        for runnable in list(self._handles):
            self.stop_for(runnable)

    def watch(self, runnable: Key, type_: ResourceType, selector: RunnableSelector) -> bool:
        """Watch what a Runnable selects, and nothing else for it; return whether the program may."""
        labels = _labels_of(selector)
        known = self._handles.get(runnable)
        if known is None or known[:2] != (type_, labels):
            self.stop_for(runnable)
            handle = self._dynamic.open(
                type_,
                namespaces=[runnable.namespace if type_.namespaced else None],
                projection=_labels_alone,
                changed=partial(self._changed, runnable, labels),
            )
            self._handles[runnable] = type_, labels, handle
        outage = self._handles[runnable][2].outage
        return outage is None or not isinstance(outage.error, Forbidden | Unauthorized)

    def stop_for(self, runnable: Key) -> None:
        """Watch nothing for a Runnable."""
        if (known := self._handles.pop(runnable, None)) is not None:
            known[2].close()

    def _changed(self, runnable: Key, labels: str, event: Event | None) -> None:
        states = (event.old, event.new) if event is not None else ()
        # Also when the objects have been read first: they may have changed since the Runnable read them itself.
        if event is None or any(matches(obj, labels=labels) for obj in states if obj is not None):
            self._woken.push(runnable)


def _labels_of(selector: RunnableSelector) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(selector.matching_labels.items()))


def _labels_alone(obj: JsonObject) -> JsonObject:
    fields = ("name", "namespace", "uid", "resourceVersion", "labels")
    metadata = obj["metadata"]
    return {"metadata": {field: metadata[field] for field in fields if field in metadata}}
