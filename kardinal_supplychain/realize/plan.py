"""Decide what is to be done for an owner, and what its status says.

    realization = Realization(owner, spec, blueprint, find=templates)
    while (plan := realization.plan(observed)).actions:
        ...  # carry the actions out; what they answered is observed from then on
    status = plan.resources

A plan goes over the resources in the order in which they are stamped. A resource with an action waits for the answer,
and so do those that take its outputs; a resource that fails stops no other. Its consumers go on with the last values of
its outputs, which stand in the status of the owner.

What a resource does with its object depends on the lifecycle of its template. `mutable` is one object, applied whenever
it differs from what the template says; the others are a run for each change of the render (`realize.runs`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

from kardinal.objects import SECRET, JsonObject, ResourceType
from kardinal.objects.applied import content_hash
from kardinal.objects.errors import KardinalError
from kardinal_supplychain.api.blueprints import ClusterDelivery, ClusterSupplyChain
from kardinal_supplychain.api.owners import OwnerSpec
from kardinal_supplychain.api.status import LastRun
from kardinal_supplychain.blueprints.compile import inputs_of, stamping_order
from kardinal_supplychain.blueprints.options import NoOption, chosen_option
from kardinal_supplychain.blueprints.params import resolve_params
from kardinal_supplychain.realize import conditions
from kardinal_supplychain.realize.bundle import is_bundle, is_same_bundle, noted_bundle, stamp_bundle
from kardinal_supplychain.realize.conditions import Finding, TemplateName, words_of
from kardinal_supplychain.realize.context import template_context
from kardinal_supplychain.realize.inputs import (
    OUTPUTS_OF,
    AnyResource,
    edges_passed_through,
    input_values,
    missing_outputs,
    outputs_taken,
)
from kardinal_supplychain.realize.outputs import (
    Outputs,
)
from kardinal_supplychain.realize.preview import Preview, value_of
from kardinal_supplychain.realize.resource_state import (
    ResourceState,
    Stamping,
    judge_run_of,
    qualified,
    read_object,
    read_runs,
    told,
)
from kardinal_supplychain.realize.retention import surplus_runs
from kardinal_supplychain.realize.runs import (
    LABEL_RESOURCE,
    is_finished,
    is_vanished,
    noted_object,
    plan_run,
    runs_of,
)
from kardinal_supplychain.realize.stamp import (
    ANNOTATION_STAMP,
    ResourcePlace,
    StampError,
    checked_render,
    render_template,
    stamp_object,
)
from kardinal_supplychain.realize.templates import TemplateFinder, whole_inputs

__all__ = [
    "Action",
    "ApplyObject",
    "Kind",
    "LookUpKind",
    "OwnerPlan",
    "Realization",
    "RenderYtt",
    "StampObservation",
    "StampRefusal",
]


class Kind(NamedTuple):
    """The kind of an object as a template writes it."""

    api_version: str
    kind: str


@dataclass(frozen=True, slots=True)
class LookUpKind:
    """Look up whether a kind is served, and read the objects of it that are stamped for the owner."""

    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderYtt:
    """Render a template with ytt."""

    resource: str
    template: str
    values: JsonObject

    @property
    def digest(self) -> str:
        """Return the name of the result: the same for the same template and values."""
        return content_hash([self.template, self.values])


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyObject:
    """Apply an object. `live` is it as it is now; None if it is not known.

    `is_run`: it is created, and never changed (`realize.runs`, `realize.bundle`).
    """

    resource: str
    type: ResourceType
    object: JsonObject
    live: JsonObject | None
    is_confidential: bool = False
    is_run: bool = False

    @property
    def is_correction(self) -> bool:
        """Return whether the object was applied as it is wanted now, and was changed since."""
        if self.live is None:
            return False
        annotations = self.live["metadata"].get("annotations") or {}
        return bool(annotations.get(ANNOTATION_STAMP) == self.object["metadata"]["annotations"][ANNOTATION_STAMP])


Action = LookUpKind | RenderYtt | ApplyObject


@dataclass(frozen=True, slots=True)
class StampRefusal:
    """Why a kind cannot be stamped, or an object was not accepted; `reason` is that of the condition."""

    message: str
    reason: str = "TemplateRejectedByAPIServer"


class StampObservation(Protocol):
    """The state of the cluster and the answers of earlier actions; None where an action would tell."""

    def kind(self, kind: Kind) -> ResourceType | StampRefusal | None:
        """Return the type of a kind that is looked up."""
        ...

    def rendered(self, render: RenderYtt) -> JsonObject | StampError | None:
        """Return what ytt answered."""
        ...

    def live(self, type_: ResourceType, name: str) -> JsonObject | None:
        """Return an object in the namespace of the owner."""
        ...

    def runs(self, type_: ResourceType, resource: str) -> Sequence[JsonObject]:
        """Return the live runs of a resource that the owner controls."""
        ...

    def removed(self, type_: ResourceType, resource: str) -> Sequence[JsonObject]:
        """Return the objects of a resource that were removed since the last reconcile, as they were."""
        ...

    def is_settled(self, live: JsonObject, desired: JsonObject) -> bool:
        """Return whether an object is as it was applied, apart from what the server or others add."""
        ...

    def refusal(self, apply: ApplyObject) -> StampRefusal | None:
        """Return why the object is not applied now: it was refused before."""
        ...


@dataclass(slots=True)
class OwnerPlan:
    """The next actions for an owner, and the state of each resource in the order of the blueprint.

    The states count once there is no action left.
    """

    actions: list[Action] = field(default_factory=list)
    states: list[ResourceState] = field(default_factory=list)


class Realization:
    """One owner with the blueprint that it matches, during one reconcile."""

    def __init__(
        self,
        owner: JsonObject,
        spec: OwnerSpec,
        blueprint: ClusterSupplyChain | ClusterDelivery,
        *,
        find: TemplateFinder,
    ) -> None:
        self.owner = owner
        self.spec = spec
        self.blueprint = blueprint
        self.find = find
        resources: Sequence[AnyResource] = blueprint.spec.resources
        self.resources = {resource.name: resource for resource in resources}
        self.order = stamping_order(resources)
        self.before = _before(owner)
        self.last_runs = {
            name: LastRun.model_validate(before["lastRun"])
            for name, before in _before(owner).items()
            if "lastRun" in before
        }
        self.rendered: dict[str, JsonObject] = {}
        self.states: dict[str, ResourceState] = {}
        """The states of resources that no action can change any more."""
        self.known: dict[str, Outputs] = {}
        self.confidential: set[str] = set()
        """Resources with data of a Secret."""
        self.stamped: dict[tuple[ResourceType, str], str] = {}
        """The resource of each object."""

    def plan(self, observed: StampObservation) -> OwnerPlan:
        """Return what is to be done next."""
        return _Pass(self, observed).plan()


class _Pass:
    """One pass over the resources of an owner whose state is not known yet."""

    def __init__(self, realization: Realization, observed: StampObservation) -> None:
        self._realization = realization
        self._observed = observed
        self._owner = realization.owner
        self._blueprint = realization.blueprint
        self._words = words_of(realization.owner["kind"])
        self._known = realization.known
        self._waiting: set[str] = set()
        """Resources whose action, or that of a producer, has to be carried out first."""
        self._confidential = realization.confidential
        self._stamped = realization.stamped
        self._actions: list[Action] = []

    def plan(self) -> OwnerPlan:
        resources = self._realization.resources
        states = self._realization.states
        for name in self._realization.order:
            if name in states:
                continue
            resource = resources[name]
            waits = any(edge.producer in self._waiting for edge in inputs_of(resource))
            state = None if waits else self._state(resource)
            if state is None:
                self._waiting.add(name)
                continue
            states[name] = state
            if state.outputs is None:
                before = self._realization.before.get(name, {})
                self._known[name] = _kept_outputs(before, resource.template_ref.kind)
            else:
                self._known[name] = state.outputs
            if state.is_confidential:
                self._confidential.add(name)
        return OwnerPlan(self._actions, [states[name] for name in resources if name in states])

    def _state(self, resource: AnyResource) -> ResourceState | None:
        """Return the state of a resource; None if an action has to be carried out first."""
        reference = resource.template_ref
        state = ResourceState(
            name=resource.name,
            submitted=conditions.submitted(),
            inputs=_producers(resource),
            is_confidential=any(edge.producer in self._confidential for edge in inputs_of(resource)),
        )
        place = f"resource [{resource.name}] in {self._words.blueprint} [{self._blueprint.metadata.name}]"
        try:
            option = chosen_option(reference, self._owner, place=place)
        except KardinalError as error:
            reason = "TemplateOptionsMatchError" if isinstance(error, NoOption) else "ResolveTemplateOptionsError"
            return _failed(state, Finding("ResourceSubmitted", "False", reason, str(error)))
        if option is not None and option.pass_through is not None:
            return self._passed_through(state, resource, option.pass_through)
        name = (option.name if option is not None else reference.name) or ""
        state.template = TemplateName(reference.kind, name)
        template = self._realization.find(reference.kind, name)
        if template is None:
            return _failed(state, conditions.templates_not_found([resource.name], type_="ResourceSubmitted"))
        if (missing := next(missing_outputs(resource, self._known), None)) is not None:
            producer, output = missing
            return _failed(state, conditions.waiting_for_input(output, producer))
        place_of_object = ResourcePlace(
            blueprint=self._blueprint.metadata.name,
            resource=resource.name,
            template_kind=reference.kind,
            template=name,
            lifecycle=template.lifecycle,
        )
        inputs = input_values(resource, self._known)
        stamping = Stamping(resource=resource, template=template, place=place_of_object, inputs=inputs)
        try:
            return self._stamp(state, stamping)
        except StampError as error:
            return _failed(state, self._stamp_failure(stamping, told(state, error)))

    def _passed_through(self, state: ResourceState, resource: AnyResource, name: str) -> ResourceState:
        outputs = {}
        for edge in edges_passed_through(resource, name):
            known = self._known.get(edge.producer, {})
            for output in outputs_taken(edge):
                if output not in known:
                    return _failed(state, conditions.waiting_for_input(output, edge.producer))
                outputs[output] = known[output]
        state.outputs = outputs
        state.passes_through = True
        state.submitted = conditions.submitted(passed_through=True)
        return state

    def _stamp(self, state: ResourceState, stamping: Stamping) -> ResourceState | None:
        rendered = self._render(stamping)
        if rendered is None:
            return None
        inputs = stamping.inputs.to_json()
        if is_bundle(rendered):
            last = self._realization.last_runs.get(state.name)
            desired = stamp_bundle(rendered, owner=self._owner, place=stamping.place, inputs=inputs, last=last)
        else:
            desired = stamp_object(rendered, owner=self._owner, place=stamping.place, inputs=inputs)
        kind = Kind(desired["apiVersion"], desired["kind"])
        found = self._observed.kind(kind)
        if found is None:
            if LookUpKind(kind) not in self._actions:
                self._actions.append(LookUpKind(kind))
            return None
        if isinstance(found, StampRefusal):
            return _failed(state, self._refused(stamping, desired, found))
        if not found.namespaced:
            raise StampError(f"a {kind.kind} is cluster-scoped, and an owner with a namespace cannot own it")
        if is_bundle(desired):
            return self._bundle(state, stamping, found, desired)
        state.is_confidential |= (found.group, found.kind) == (SECRET.group, SECRET.kind)
        name = desired["metadata"].get("name")
        if name is not None and (other := self._stamped.setdefault((found, name), state.name)) != state.name:
            finding = conditions.duplicate_object(state.name, other=other, qualified=qualified(found, name))
            return _failed(state, finding)
        if stamping.template.lifecycle == "mutable":
            return self._mutable(state, stamping, found, desired)
        return self._run(state, stamping, found, desired)

    def _render(self, stamping: Stamping) -> JsonObject | None:
        """Return the render of a resource; None if ytt has to be asked first. Raises `StampError`."""
        name = stamping.resource.name
        template = stamping.template
        if (known := self._realization.rendered.get(name)) is not None:
            return known
        params = resolve_params(
            template=template.params,
            blueprint=self._blueprint.spec.params,
            resource=stamping.resource.params,
            owner=self._realization.spec.params,
        )
        context = template_context(
            self._owner,
            params={key: param.value for key, param in params.items()},
            inputs=stamping.inputs,
            labels=stamping.place.labels(self._owner),
        )
        if template.ytt is None:
            rendered = render_template(template, context)
        else:
            render = RenderYtt(resource=name, template=template.ytt, values=context)
            answer = self._observed.rendered(render)
            if answer is None:
                self._actions.append(render)
                return None
            if isinstance(answer, StampError):
                raise answer
            rendered = checked_render(answer)
        self._realization.rendered[name] = rendered
        return rendered

    def _mutable(
        self, state: ResourceState, stamping: Stamping, type_: ResourceType, desired: JsonObject
    ) -> ResourceState | None:
        name = desired["metadata"]["name"]
        live = self._observed.live(type_, name)
        last = self._realization.last_runs.get(state.name)
        if live is None and (gone := self._finished(type_, desired)) is not None:
            found = read_object(state, stamping, type_, gone)
            found.last_run = noted_object(gone)
            return found
        if is_vanished(desired, live, last):
            state.type = type_
            return state
        if live is not None and (controller := _other_controller(live, self._owner)):
            return _failed(state, self._refused(stamping, desired, StampRefusal(f"already controlled by {controller}")))
        is_going = live is not None and "deletionTimestamp" in live["metadata"]
        if live is None or not (is_going or self._observed.is_settled(live, desired)):
            apply = ApplyObject(
                resource=state.name,
                type=type_,
                object=desired,
                live=live,
                is_confidential=state.is_confidential,
            )
            if (refusal := self._observed.refusal(apply)) is not None:
                return _failed(state, self._refused(stamping, desired, refusal))
            self._actions.append(apply)
            return None
        found = read_object(state, stamping, type_, live)
        if last is not None or is_finished(live):
            found.last_run = noted_object(live)
        return found

    def _finished(self, type_: ResourceType, desired: JsonObject) -> JsonObject | None:
        """Return the object as it was, if it finished and was removed since the last reconcile."""
        labels = desired["metadata"]["labels"]
        stamp = desired["metadata"]["annotations"][ANNOTATION_STAMP]
        for gone in self._observed.removed(type_, labels[LABEL_RESOURCE]):
            if is_finished(gone) and noted_object(gone).stamp == stamp:
                return gone
        return None

    def _run(
        self, state: ResourceState, stamping: Stamping, type_: ResourceType, desired: JsonObject
    ) -> ResourceState | None:
        """Return the state of a resource whose object is made anew for each change of its render."""
        template = stamping.template
        last = self._realization.last_runs.get(state.name)
        judge = partial(judge_run_of, stamping)
        live = runs_of(self._observed.runs(type_, state.name), last, judge)
        removed = runs_of(self._observed.removed(type_, state.name), last, judge)
        finished = [run.object for run in removed if run.outcome != "unfinished"]
        runs = runs_of([*(run.object for run in live), *finished], last, judge)
        wanted = plan_run(desired, runs, last).create
        if wanted is not None:
            return self._create(state, stamping, type_, wanted, rendered=desired)
        found = read_runs(state, stamping, type_, runs, last)
        found.runs = [run.name for run in live]
        outputs_of = found.last_run.outputs_of if found.last_run is not None else 0
        found.surplus = surplus_runs(live, template.retention_policy, outputs_of=outputs_of)
        return found

    def _create(
        self, state: ResourceState, stamping: Stamping, type_: ResourceType, run: JsonObject, *, rendered: JsonObject
    ) -> ResourceState | None:
        """Create a run, unless it was refused a moment ago: then return the state that says so, as `rendered`."""
        create = ApplyObject(
            resource=state.name,
            type=type_,
            object=run,
            live=None,
            is_confidential=state.is_confidential,
            is_run=True,
        )
        if (refusal := self._observed.refusal(create)) is not None:
            return _failed(state, self._refused(stamping, rendered, refusal))
        self._actions.append(create)
        return None

    def _bundle(
        self, state: ResourceState, stamping: Stamping, type_: ResourceType, desired: JsonObject
    ) -> ResourceState | None:
        name = desired["metadata"]["name"]
        live = self._observed.live(type_, name)
        last = self._realization.last_runs.get(state.name)
        if last is not None and last.name == name:
            if live is None or live["metadata"]["uid"] != last.uid:
                # It is gone, and not created again: a newer one may be on its way by now.
                return state
        elif live is None:
            return self._create(state, stamping, type_, desired, rendered=desired)
        elif not is_same_bundle(live, desired):
            refusal = StampRefusal("there is another Bundle of this name")
            return _failed(state, self._refused(stamping, desired, refusal))
        found = read_object(state, stamping, type_, live)
        health = found.healthy.status if found.healthy is not None else "Unknown"
        found.last_run = noted_bundle(live, desired, last, health=health)
        return found

    def _stamp_failure(self, stamping: Stamping, error: str) -> Finding:
        return conditions.stamp_failure(
            error,
            words=self._words,
            blueprint=self._blueprint.metadata.name,
            resource=stamping.resource.name,
            template=TemplateName(stamping.place.template_kind, stamping.place.template),
        )

    def _refused(self, stamping: Stamping, desired: JsonObject, refusal: StampRefusal) -> Finding:
        message = refusal.message
        if "string" in message and (whole := next(whole_inputs(stamping.template.template), None)) is not None:
            # The server says which field has to be a text, and not that a tag made it an object.
            _, tag, value = whole
            message = f"{message}. {tag} is an object: write {value}"
        finding = conditions.rejected(
            message,
            words=self._words,
            blueprint=self._blueprint.metadata.name,
            resource=stamping.resource.name,
            stamped=desired,
        )
        return replace(finding, reason=refusal.reason)


def _failed(state: ResourceState, submitted: Finding) -> ResourceState:
    """Return the state of a resource that has no new object: the earlier one is kept with its outputs."""
    state.submitted = submitted
    return state


def _before(owner: JsonObject) -> Mapping[str, JsonObject]:
    """Return the resources in the status of an owner by name."""
    resources = (owner.get("status") or {}).get("resources") or ()
    return {resource["name"]: resource for resource in resources}


def _kept_outputs(before: JsonObject, kind: str) -> dict[str, Any]:
    """Return the values of those outputs in a status whose preview is whole."""
    kept = {}
    for output in before.get("outputs") or ():
        if output["name"] in OUTPUTS_OF[kind]:
            try:
                kept[output["name"]] = value_of(Preview(output.get("preview", ""), output.get("digest", "")))
            except ValueError:
                continue
    return kept


def _producers(resource: AnyResource) -> tuple[str, ...]:
    """Return the resources whose outputs a resource takes: sources, images, the deployment, configs."""
    order = ("sources", "images", "deployment", "configs")
    edges = sorted(inputs_of(resource), key=lambda edge: order.index(edge.type))
    return tuple(edge.producer for edge in edges)


def _other_controller(live: JsonObject, owner: JsonObject) -> str:
    """Return kind and name of the controller of an object, if that is not the owner; otherwise an empty text."""
    for reference in live["metadata"].get("ownerReferences") or ():
        if reference.get("controller") is True and reference.get("uid") != owner["metadata"]["uid"]:
            return f"{reference.get('kind')} {reference.get('name')}"
    return ""
