"""Graphs that people write for a Bundle with `intent.graph: manual`: admit one, or say why not (pure).

An admitted Graph acts with the controller's rights, and agents write to Git for its steps. So `admit` proves that each
of its nodes is one that translation makes. Nothing is compared by meaning: from what a node says of itself under
`x-kardinal` (its environment, the environments before it, its gate) and from the Pipeline, the Bundle and the gates of
today, the node is made again, and the two must be equal. A path, a label, a repository or an expression that
translation would not have written is a difference, whatever it would evaluate to.

So an author chooses which environments there are, in which order, and behind which gates. Two rules keep the gates of
the organisation: all that bind an environment are before it, and an environment that the Pipeline has before another
one, and the Graph has not, counts as skipped.

`exported` makes such a Graph from the one of translation, for an author to begin with.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from kardinal.graph import GraphError, compile_graph
from kardinal.objects import JsonObject
from kardinal.objects.text import cut
from kardinal.promotion.api import Bundle, Pipeline
from kardinal.promotion.api.names import LABEL_BUNDLE, LABEL_PIPELINE
from kardinal.promotion.api.pipeline import Environment
from kardinal.promotion.policy.attestation import NOT_ATTESTED, Attestation
from kardinal.promotion.policy.binding import place_of
from kardinal.promotion.policy.matching import GateTemplate, instance_names
from kardinal.promotion.translation.bundle_fit import fit_problems
from kardinal.promotion.translation.conditional import left_out
from kardinal.promotion.translation.environment_order import ancestors
from kardinal.promotion.translation.environment_order import upstreams as upstreams_of
from kardinal.promotion.translation.errors import InvalidSpec, SkipDenied
from kardinal.promotion.translation.nodes import PromotedBundle, bundle_node, freeze_node, gate_node, step_node
from kardinal.promotion.translation.pins import check_pins
from kardinal.promotion.translation.recorded import spec_hash
from kardinal.promotion.translation.repository import Features
from kardinal.promotion.translation.skip import check_skips
from kardinal.promotion.translation.topology import NODE_KEY
from kardinal.promotion.translation.translate import validate
from kardinal.promotion.translation.validation import bundle_problems, gate_problems

__all__ = ["AccountAnswers", "AdmittedGraph", "GraphRefusal", "admit", "exported", "is_offered"]

_SPEC = ("bundleRef", "serviceAccountName", "nodes")
_NODE = ("id", NODE_KEY, "readyWhen", "propagateWhen", "template")
REASONS = 10
"""The most reasons of a refusal."""
_EXAMPLE = (
    "as {kind: step, environment: prod, upstreams: [staging]} or "
    "{kind: gate, environment: prod, gate: {namespace: team, name: soak}}"
)
_SHOWN = 120
"""The most characters of a value in a reason."""


@dataclass(frozen=True, slots=True)
class AccountAnswers:
    """The answers of the API server about the account that a Graph names."""

    name: str
    """The account; empty if the Graph names none."""
    lent: bool
    """Whether the controller may act as the account."""
    promotes: bool
    """Whether the account has the verb `promote` on the Bundle."""


@dataclass(frozen=True, slots=True)
class AdmittedGraph:
    """The Graph is walked: it is recorded with this uid, and with this hash of its spec."""

    uid: str
    hash: str


@dataclass(frozen=True, slots=True)
class GraphRefusal:
    """The Graph is not walked; each reason names what to change.

    `may_pass`: nothing of the Graph has to change, so the question is asked again. A right is missing, of which no
    event tells, or a permission to skip, which may depend on the time.
    """

    reasons: tuple[str, ...]
    may_pass: bool = False


def is_offered(graph: JsonObject) -> bool:
    """Return whether a Graph names a Bundle that it promotes, and no object controls it."""
    references = graph["metadata"].get("ownerReferences") or ()
    return "bundleRef" in _mapping(graph.get("spec")) and not any(each.get("controller") for each in references)


def exported(graph: JsonObject, *, account: str) -> JsonObject:
    """Return a Graph of translation as an author would write it, with the rights of a ServiceAccount."""
    metadata = graph["metadata"]
    return {
        "apiVersion": graph["apiVersion"],
        "kind": graph["kind"],
        "metadata": {key: metadata[key] for key in ("name", "namespace", "labels")},
        "spec": {"bundleRef": metadata["name"], "serviceAccountName": account, "nodes": graph["spec"]["nodes"]},
    }


def admit(
    graph: JsonObject,
    bundle: Bundle,
    pipeline: Pipeline,
    gates: Sequence[GateTemplate],
    account: AccountAnswers,
    *,
    features: Features,
    now: datetime,
    attestation: Attestation = NOT_ATTESTED,
) -> AdmittedGraph | GraphRefusal:
    """Return whether a Graph that a person has written for a Bundle is walked.

    `gates` are those that `collect` returns for the Pipeline.
    """
    if problems := [*validate(pipeline, features=features), *bundle_problems(bundle), *gate_problems(gates)]:
        return GraphRefusal(tuple(map(str, problems)))
    reading = _Reading(bundle, pipeline, gates)
    reasons = [*_head_reasons(graph, bundle, pipeline), *reading.read(_mapping(graph.get("spec")).get("nodes"))]
    if not reasons:
        reasons += reading.fit_reasons(features)
    if not reasons:
        reasons += _compile_reasons(graph["spec"])
    if reasons:
        return GraphRefusal(tuple(reasons))
    passing = [*_account_reasons(account, bundle), *reading.skip_reasons(attestation, now)]
    if passing:
        return GraphRefusal(tuple(passing), may_pass=True)
    return AdmittedGraph(graph["metadata"]["uid"], spec_hash(graph))


def _head_reasons(graph: JsonObject, bundle: Bundle, pipeline: Pipeline) -> Iterator[str]:
    """Yield what is wrong outside the nodes."""
    name = bundle.metadata.name
    metadata = graph["metadata"]
    if bundle.spec.intent.graph != "manual":
        yield f"Bundle {name} gets the Graph of its Pipeline: create one with spec.intent.graph: manual"
    spec = _mapping(graph.get("spec"))
    if spec.get("bundleRef") != name or metadata["name"] != name:
        yield f"metadata.name and spec.bundleRef: a Graph and the Bundle that it promotes have one name, here {name}"
    if metadata["namespace"] != bundle.metadata.namespace or not is_offered(graph):
        yield "metadata.ownerReferences: another object controls it"
    for key in sorted(map(str, spec.keys() - {*_SPEC})):
        yield f"spec.{key}: the Graph of a Bundle has {', '.join(_SPEC)}"
    labels = metadata.get("labels") or {}
    own = PromotedBundle(bundle.metadata.namespace, pipeline.metadata.name, name).labels({})
    for key in (LABEL_PIPELINE, LABEL_BUNDLE):
        if labels.get(key, own[key]) != own[key]:
            yield f"metadata.labels[{key}]: write {own[key]}, or leave it out"


def _account_reasons(account: AccountAnswers, bundle: Bundle) -> Iterator[str]:
    name = bundle.metadata.name
    namespace = bundle.metadata.namespace
    if not account.name:
        yield "spec.serviceAccountName: name a ServiceAccount of this namespace that may promote the Bundle"
    elif not account.lent:
        yield (
            f"spec.serviceAccountName: the controller may not act as ServiceAccount {account.name}: give it the verb "
            "impersonate on serviceaccounts of that name by a Role in this namespace"
        )
    elif not account.promotes:
        yield (
            f"spec.serviceAccountName: ServiceAccount {account.name} may not promote Bundle {name}: give it the verb "
            f"promote on bundles.kardinal.io by a Role in namespace {namespace}"
        )


def _compile_reasons(spec: JsonObject) -> Iterator[str]:
    try:
        compile_graph(spec)
    except GraphError as error:
        yield from map(str, error.problems)


@dataclass(frozen=True, slots=True)
class _Step:
    """The description of the node of a step, by the node itself."""

    id: str
    environment: str
    upstreams: tuple[str, ...]
    node: JsonObject


@dataclass(frozen=True, slots=True)
class _Gate:
    """The description of the node of a gate, by the node itself; `key` is namespace, name and environment."""

    id: str
    key: tuple[str, str, str]
    node: JsonObject


@dataclass(slots=True)
class _Reading:
    """The nodes of one Graph, read and compared with those that translation makes."""

    bundle: Bundle
    pipeline: Pipeline
    gates: Sequence[GateTemplate]
    steps: dict[str, _Step] = field(default_factory=dict)
    """By environment."""
    found_gates: dict[tuple[str, str, str], _Gate] = field(default_factory=dict)
    others: list[JsonObject] = field(default_factory=list)
    """The nodes of the Bundle and of its freeze."""

    def read(self, nodes: object) -> list[str]:
        """Read the nodes; return what is wrong with them."""
        if not isinstance(nodes, list) or not nodes:
            return ["spec.nodes: list the steps and gates of the Bundle"]
        # A comparison needs what is before a node, so it begins once every node has said what it is.
        return (
            _few(reason for index, node in enumerate(nodes) for reason in self._sorted_in(node, index))
            or _few((*self._order_reasons(), *self._org_gate_reasons()))
            or _few(self._node_reasons())
        )

    def fit_reasons(self, features: Features) -> list[str]:
        """Return why an environment cannot take the Bundle."""
        there = [self._environments[name] for name in self.steps]
        try:
            check_pins(self.bundle, there)
        except InvalidSpec as error:
            return [str(error)]
        return [str(each) for each in fit_problems(self.bundle, self.pipeline.spec.git, there, features.registry.steps)]

    def skip_reasons(self, attestation: Attestation, now: datetime) -> Iterator[str]:
        """Yield why environments of the Pipeline may not be left out before others."""
        today = upstreams_of(self.pipeline.spec.environments)
        ours = {name: step.upstreams for name, step in self.steps.items()}
        skipped = set().union(*(ancestors(today, name) - ancestors(ours, name) for name in ours))
        listed = [each for each in self.pipeline.spec.environments if each.name in skipped]
        try:
            check_skips(listed, self.pipeline, self.bundle, self.gates, attestation=attestation, now=now)
        except SkipDenied as error:
            yield f"{error}; or write its step, and wait for it"

    @property
    def _environments(self) -> dict[str, Environment]:
        return {environment.name: environment for environment in self.pipeline.spec.environments}

    @property
    def _promotion(self) -> PromotedBundle:
        metadata = self.bundle.metadata
        kinds = self.bundle.spec.artifacts.kinds
        return PromotedBundle(metadata.namespace, self.pipeline.metadata.name, metadata.name, kinds)

    def _sorted_in(self, node: object, index: int) -> Iterator[str]:
        """Take a node to those of its kind; yield why it is of none."""
        if not isinstance(node, dict) or not isinstance(node.get("id"), str):
            yield f"spec.nodes[{index}]: a node has an id"
            return
        where = f"node {cut(node['id'], 63)}"
        if node["id"] in ("bundle", "freeze"):
            self.others.append(node)
            return
        if words := sorted(map(str, node.keys() - {*_NODE})):
            yield f"{where}: {cut(words[0], 32)} is not available in the Graph of a Bundle, which has steps and gates"
            return
        match node.get(NODE_KEY):
            case {"kind": "step", "environment": str(environment), "upstreams": list(upstreams)} if all(
                isinstance(each, str) for each in upstreams
            ):
                yield from self._take_step(_Step(node["id"], environment, tuple(upstreams), node), where)
            case {
                "kind": "gate",
                "environment": str(environment),
                "gate": {"namespace": str(namespace), "name": str(name)},
            }:
                yield from self._take_gate(_Gate(node["id"], (namespace, name, environment), node), where)
            case _:
                yield f"{where}: {NODE_KEY} says what it is, {_EXAMPLE}"

    def _take_step(self, step: _Step, where: str) -> Iterator[str]:
        if step.environment in self.steps:
            yield f"{where}: there are two steps for {cut(step.environment, 63)}"
        elif step.environment not in self._environments:
            known = ", ".join(self._environments)
            yield f"{where}: the Pipeline has no environment {cut(step.environment, 63)}; there are: {known}"
        self.steps[step.environment] = step

    def _take_gate(self, gate: _Gate, where: str) -> Iterator[str]:
        name = cut("/".join(gate.key[:2]), _SHOWN)
        if gate.key in self.found_gates:
            yield f"{where}: there are two nodes for gate {name} before {cut(gate.key[2], 63)}"
        elif self._template(gate.key) is None:
            yield f"{where}: there is no gate {name} for Pipeline {self.pipeline.metadata.name}"
        self.found_gates[gate.key] = gate

    def _template(self, key: tuple[str, str, str]) -> GateTemplate | None:
        named = (each for each in self.gates if (each.namespace, each.name) == key[:2] and not each.permits_skip)
        return next(named, None)

    def _order_reasons(self) -> Iterator[str]:
        """Yield environments that are waited for and have no step, or whose condition leaves them out."""
        if not self.steps:
            yield "spec.nodes: there is no step"
        for step in self.steps.values():
            for name in step.upstreams:
                if name not in self.steps:
                    yield f"node {step.id}: {NODE_KEY}.upstreams: the Graph has no step for {cut(name, 63)}"
        for gate in self.found_gates.values():
            if gate.key[2] not in self.steps:
                yield f"node {gate.id}: the Graph has no step for {cut(gate.key[2], 63)}"
        conditional, undecided = left_out([self._environments[name] for name in self.steps], self.bundle)
        for name, values in conditional.items():
            yield f"node {self.steps[name].id}: the Pipeline leaves {name} out: its condition is false: {values}"
        yield from map(str, undecided)

    def _org_gate_reasons(self) -> Iterator[str]:
        """Yield the gates of the organisation that bind an environment and are not before it."""
        for name, step in self.steps.items():
            place = place_of(self.pipeline, self._environments[name])
            for gate in self.gates:
                binds = gate.scope == "org" and not gate.permits_skip and gate.applies_to(place)
                if binds and (gate.namespace, gate.name, name) not in self.found_gates:
                    named = f"{gate.namespace}/{gate.name}"
                    yield f"node {step.id}: org gate {named} holds {name}, and has no node before it"

    def _node_reasons(self) -> Iterator[str]:
        """Yield where nodes differ from those that translation makes."""
        promotion = self._promotion
        own = {"bundle": bundle_node(promotion), "freeze": freeze_node(promotion)}
        for node in self.others:
            yield from _differences(node, own[node["id"]], f"node {node['id']}: ")
        instances = instance_names(promotion.bundle, set(self.found_gates))
        for name, step in self.steps.items():
            environment = self._environments[name]
            upstreams: dict[str, str | None] = {before: self.steps[before].id for before in step.upstreams}
            gates = [gate for gate in self.found_gates.values() if gate.key[2] == name]
            for gate in gates:
                template = self._template(gate.key)
                if template is not None:
                    wanted = gate_node(
                        promotion,
                        template,
                        environment,
                        identifier=gate.id,
                        name=instances[gate.key],
                        upstreams=upstreams,
                    )
                    yield from _differences(gate.node, wanted, f"node {gate.id}: ")
            wanted = step_node(
                promotion,
                environment,
                self.pipeline.spec,
                identifier=step.id,
                upstreams=upstreams,
                gates=[gate.id for gate in gates],
            )
            yield from _differences(step.node, wanted, f"node {step.id}: ")


def _differences(written: object, wanted: object, path: str) -> Iterator[str]:
    """Yield the fields of a node that are not as translation writes them; only what is wanted is quoted."""
    if isinstance(written, dict) and isinstance(wanted, dict):
        for key in dict.fromkeys((*wanted, *sorted(map(str, written.keys() - wanted.keys())))):
            below = f"{path}{'' if path.endswith(' ') else '.'}{cut(key, 63)}"
            if key not in wanted:
                yield f"{below}: leave it out"
            elif key not in written:
                yield f"{below}: write {_shown(wanted[key])}"
            else:
                yield from _differences(written[key], wanted[key], below)
    elif not _same(written, wanted):
        yield f"{path}: write {_shown(wanted)}"


def _same(one: object, other: object) -> bool:
    """Return whether two values are the same JSON: 1, 1.0 and true are three."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other


def _shown(value: object) -> str:
    return cut(json.dumps(value, ensure_ascii=False), _SHOWN)


def _few(reasons: Iterable[str]) -> list[str]:
    return list(islice(reasons, REASONS))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
