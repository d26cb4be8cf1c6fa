"""The informers of the control plane, and the indexes that find its objects from each other.

All reconcilers share one informer per kind. Their lookups ("the Bundles of this Pipeline", "the gates of this Bundle")
use indexes, so that a reconcile costs the same with ten Bundles and with ten thousand.
"""

from __future__ import annotations

from collections.abc import Iterable, Reversible

from kardinal.objects import GRAPH, JsonObject, Key, controller_of, labels_of
from kardinal.objects.conditions import find_condition
from kardinal.promotion.api.names import LABEL_PIPELINE, label_value, step_name
from kardinal.promotion.kinds import BUNDLE, PIPELINE, POLICY_GATE, PROMOTION_STEP
from kardinal.promotion.policy.matching import is_instance, is_template
from kardinal.runtime import Manager

__all__ = [
    "Caches",
    "bundle_key",
    "checks_verified",
    "has_started",
    "is_pending",
    "needs_translation",
    "pipeline_label",
]

_BUNDLE = "bundle"
_CONTRACTS = "contracts"
_ENVIRONMENT = "environment"
_INSTANCES = "instances"
_OF_NO_BUNDLE = "of no bundle"
_ORIGIN = "origin"
_OTHERS = "others"
_PENDING = "pending"
_PIPELINE = "pipeline"
_PROMOTING = "promoting"
_STARTED = "started"
_TEMPLATES = "templates"
_UNTRANSLATED = "untranslated"
_VERIFYING = "verifying"


class Caches:
    """The informers of one manager, declared before it starts: of all namespaces, or of one."""

    def __init__(self, manager: Manager, *, namespace: str | None = None) -> None:
        self.pipelines = manager.informer(PIPELINE, namespace=namespace)
        self.bundles = manager.informer(BUNDLE, namespace=namespace)
        self.graphs = manager.informer(GRAPH, namespace=namespace)
        self.steps = manager.informer(PROMOTION_STEP, namespace=namespace)
        self.gates = manager.informer(POLICY_GATE, namespace=namespace)
        self.pipelines.index(_PIPELINE, lambda obj: [_index_value(obj, label_value(obj["metadata"]["name"]))])
        self.pipelines.index(_ENVIRONMENT, _environments_of_pipeline)
        self.pipelines.index(_OTHERS, _namespaces_if_statuses_on_others)
        self.bundles.index(_PIPELINE, lambda obj: [_index_value(obj, pipeline_label(obj))])
        self.bundles.index(_PENDING, lambda obj: [_index_value(obj, pipeline_label(obj))] if is_pending(obj) else [])
        self.bundles.index(_STARTED, lambda obj: [_index_value(obj, pipeline_label(obj))] if has_started(obj) else [])
        self.bundles.index(
            _UNTRANSLATED, lambda obj: ["", obj["metadata"]["namespace"]] if needs_translation(obj) else []
        )
        self.bundles.index(_PROMOTING, lambda obj: ["", obj["metadata"]["namespace"]] if _is_promoting(obj) else [])
        self.steps.index(_BUNDLE, lambda obj: [str(bundle_key(obj))])
        self.steps.index(_VERIFYING, _checks_of_step)
        self.gates.index(_BUNDLE, _bundle_of_gate)
        self.gates.index(_ORIGIN, _template_of_gate)
        self.gates.index(_INSTANCES, _pipeline_of_gate)
        self.gates.index(
            _CONTRACTS,
            lambda obj: [obj["metadata"]["namespace"]] if _reads_contracts(obj) else [],
        )
        self.gates.index(
            _OF_NO_BUNDLE, lambda obj: [] if is_instance(labels_of(obj)) else ["", obj["metadata"]["namespace"]]
        )
        self.gates.index(_TEMPLATES, lambda obj: [obj["metadata"]["namespace"]] if is_template(labels_of(obj)) else [])

    def pipeline(self, namespace: str, label: str) -> JsonObject | None:
        """Return the Pipeline for the value of the label `kardinal.io/pipeline`."""
        return next(iter(self.pipelines.by_index(_PIPELINE, f"{namespace}/{label}")), None)

    def namespaces(self) -> set[str]:
        """Return the namespaces that have a Pipeline."""
        return {pipeline["metadata"]["namespace"] for pipeline in self.pipelines.list()}

    def has_environment(self, environment: str, namespace: str = "") -> bool:
        """Return whether a Pipeline has the environment; the namespace "" stands for all namespaces."""
        value = f"{namespace}/{environment}"
        return bool(self.pipelines.by_index(_ENVIRONMENT, value, limit=1))

    def with_statuses_on_others(self, namespace: str = "") -> list[JsonObject]:
        """Return the Pipelines with `git.statusOnOthers` in a namespace, or in all."""
        return self.pipelines.by_index(_OTHERS, namespace)

    def bundles_of(self, namespace: str, pipeline: str) -> list[JsonObject]:
        """Return the Bundles of a Pipeline; `pipeline` is its name or the value of its label."""
        return self.bundles.by_index(_PIPELINE, f"{namespace}/{label_value(pipeline)}")

    def pending(self, namespace: str, pipeline: str) -> Reversible[JsonObject]:
        """Return the Bundles of a Pipeline that no run has decided about, in the order in which the informer got them.

        There may be thousands, so the list is not copied, and the caller must not await while it iterates.
        """
        return self.bundles.filed(_PENDING, f"{namespace}/{label_value(pipeline)}")

    def started(self, namespace: str, pipeline: str) -> list[JsonObject]:
        """Return the Bundles of a Pipeline that have, or had, a Graph; `historyLimit` keeps them few."""
        return self.bundles.by_index(_STARTED, f"{namespace}/{label_value(pipeline)}")

    def untranslated(self, namespace: str = "") -> list[JsonObject]:
        """Return the Bundles of a namespace, or of all, for which `needs_translation` is true."""
        return self.bundles.by_index(_UNTRANSLATED, namespace)

    def promoting(self, namespace: str = "") -> list[JsonObject]:
        """Return the Bundles of a namespace, or of all, in phase Promoting."""
        return self.bundles.by_index(_PROMOTING, namespace)

    def steps_of(self, bundle: Key) -> list[JsonObject]:
        return self.steps.by_index(_BUNDLE, str(bundle))

    def step_of_graph(self, graph: JsonObject, environment: str) -> JsonObject | None:
        """Return the PromotionStep that a Graph made for an environment."""
        metadata = graph["metadata"]
        stored = self.steps.get(metadata["namespace"], step_name(metadata["name"], environment))
        owner = controller_of(stored, GRAPH) if stored is not None else None
        return stored if owner is not None and owner.uid == metadata["uid"] else None

    def verifying(self, check: Key) -> list[JsonObject]:
        """Return the PromotionSteps whose environments are healthy and wait for the results of a MetricCheck."""
        return self.steps.by_index(_VERIFYING, str(check))

    def gates_of(self, bundle: Key) -> list[JsonObject]:
        """Return the gate instances of a Bundle."""
        return self.gates.by_index(_BUNDLE, str(bundle))

    def gates_of_no_bundle(self, namespace: str = "") -> list[JsonObject]:
        """Return the gates of a namespace, or of all, that are no instances: templates, freezes and holds."""
        return self.gates.by_index(_OF_NO_BUNDLE, namespace)

    def instances(self, template: Key) -> list[JsonObject]:
        """Return the gate instances that name the gate `template`."""
        return self.gates.by_index(_ORIGIN, str(template))

    def gates_reading(self, variable: str, *, namespace: str, pipeline: str) -> list[JsonObject]:
        """Return the gate instances of a Pipeline whose expressions read a variable, such as `previousBundle`."""
        instances = self.gates.by_index(_INSTANCES, f"{namespace}/{label_value(pipeline)}")
        return [gate for gate in instances if self._reads(variable, gate["spec"]["origin"])]

    def gates_reading_contracts(self, namespace: str) -> list[JsonObject]:
        """Return the gate instances of a namespace that were made to read `contracts`."""
        return self.gates.by_index(_CONTRACTS, namespace)

    def _reads(self, variable: str, origin: JsonObject) -> bool:
        template = self.gates.get(origin["namespace"], origin["name"])
        return template is not None and variable in template["spec"]["expression"]

    def templates(self, namespaces: Iterable[str]) -> list[JsonObject]:
        """Return the gates of these namespaces that are neither instances nor freezes."""
        return [gate for namespace in sorted(set(namespaces)) for gate in self.gates.by_index(_TEMPLATES, namespace)]


def pipeline_label(bundle: JsonObject) -> str:
    """Return the Pipeline of a Bundle as a label value: from its status, otherwise from its label."""
    known = bundle.get("status", {}).get("pipeline")
    return label_value(known) if known else labels_of(bundle).get(LABEL_PIPELINE, "")


def needs_translation(bundle: JsonObject) -> bool:
    """Return whether a Bundle has no Graph yet, or its last translation was refused."""
    status = bundle.get("status", {})
    if status.get("phase") == "Superseded":
        return False
    conditions = {condition["type"] for condition in status.get("conditions", ())}
    return "graphRef" not in status or "InvalidSpec" in conditions or status.get("phase") == "SkipDenied"


def is_pending(bundle: JsonObject) -> bool:
    """Return whether no run has decided about a Bundle so far, except that its Pipeline does not exist."""
    status = bundle.get("status", {})
    if status.get("phase") == "Available":
        ready = find_condition(status, "Ready")
        return ready is not None and ready["reason"] == "PipelineNotFound"
    return not status.get("phase")


def has_started(bundle: JsonObject) -> bool:
    """Return whether a Bundle has, or had, a Graph."""
    return "graphRef" in bundle.get("status", {})


def _is_promoting(bundle: JsonObject) -> bool:
    return bool(bundle.get("status", {}).get("phase") == "Promoting")


def bundle_key(step: JsonObject) -> Key:
    """Return the Bundle of a PromotionStep."""
    return Key(step["metadata"]["namespace"], step["spec"]["bundleRef"])


def checks_verified(step: JsonObject) -> list[Key]:
    """Return the MetricChecks whose results a PromotionStep waits for."""
    status = step.get("status") or {}
    waits = status.get("state") == "HealthChecking" and "verifyingSince" in status
    named = (step["spec"].get("verify") or {}).get("metrics", ()) if waits else ()
    return [Key(step["metadata"]["namespace"], name) for name in named]


def _checks_of_step(step: JsonObject) -> Iterable[str]:
    return map(str, checks_verified(step))


def _environments_of_pipeline(pipeline: JsonObject) -> Iterable[str]:
    # An API server may have stored a Pipeline without environments.
    names = [entry["name"] for entry in pipeline["spec"].get("environments", ())]
    namespaces = ("", pipeline["metadata"]["namespace"])
    return [f"{namespace}/{name}" for namespace in namespaces for name in (*names, *[""][: len(names)])]


def _namespaces_if_statuses_on_others(pipeline: JsonObject) -> Iterable[str]:
    asked = pipeline["spec"]["git"].get("statusOnOthers")
    return ["", pipeline["metadata"]["namespace"]] if asked else []


def _bundle_of_gate(gate: JsonObject) -> Iterable[str]:
    """Return the Bundle whose Graph controls a gate; a Graph has the name of its Bundle."""
    owner = controller_of(gate, GRAPH)
    return [_index_value(gate, owner.name)] if owner else []


def _template_of_gate(gate: JsonObject) -> Iterable[str]:
    origin = gate["spec"].get("origin")
    return [str(Key(origin["namespace"], origin["name"]))] if origin and is_instance(labels_of(gate)) else []


def _pipeline_of_gate(gate: JsonObject) -> Iterable[str]:
    origin = gate["spec"].get("origin")
    return [_index_value(gate, label_value(origin["pipeline"]))] if origin and is_instance(labels_of(gate)) else []


def _reads_contracts(gate: JsonObject) -> bool:
    return is_instance(labels_of(gate)) and "contracts" in gate["spec"]["expression"]


def _index_value(obj: JsonObject, name: str) -> str:
    return str(Key(obj["metadata"]["namespace"], name))
