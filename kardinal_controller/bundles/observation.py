"""What a look at a Bundle finds, and what follows from it (pure).

A `Scene` is everything the next status depends on, read at one moment; each function here is one thing it can mean.
What has to be written or created on the way is the reconciler's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kardinal.api import Bundle, Pipeline, PromotionStep
from kardinal.api.bundle import BundleStatus, EnvironmentStatus
from kardinal.api.names import LABEL_PIPELINE
from kardinal.objects import JsonObject, labels_of
from kardinal.translation.errors import InvalidSpec, Problem, PromotionError, SkipDenied
from kardinal.translation.route import find_route
from kardinal.translation.topology import Topology, read_topology
from kardinal_controller.bundles.progress import environments, graph_trouble, progress
from kardinal_controller.bundles.status import Finding
from kardinal_controller.bundles.supersession import FINISHED

__all__ = [
    "Scene",
    "asks_for_more",
    "entries_of",
    "followed",
    "has_come_to_rest",
    "intent_moved",
    "label_warning",
    "pipeline_missing",
    "refused",
    "superseded",
    "unchanged",
    "was_refused",
    "without_label",
]


@dataclass(frozen=True, slots=True)
class Scene:
    """A Bundle and all that its next status depends on; `graph` is its own or None."""

    current: JsonObject
    bundle: Bundle
    label: str
    pipeline: Pipeline | None
    siblings: Sequence[Bundle]
    graph: JsonObject | None
    steps: Mapping[str, PromotionStep]

    @property
    def topology(self) -> Topology | None:
        return read_topology(self.graph) if self.graph is not None else None


def entries_of(scene: Scene) -> dict[str, EnvironmentStatus]:
    status = scene.bundle.status
    under_way = status.phase not in FINISHED
    return environments(scene.topology, scene.steps, status.environments, under_way=under_way)


def followed(scene: Scene) -> Finding:
    """What the Graph and the steps say."""
    entries = entries_of(scene)
    found = progress(entries)
    trouble = graph_trouble(scene.graph) if scene.graph is not None and found.phase == "Promoting" else None
    return Finding(
        phase=found.phase,
        reason="GraphTrouble" if trouble else found.reason,
        message=trouble or found.message,
        environments=entries,
        graph_ref=scene.bundle.metadata.name,
        graph_recreated=scene.bundle.status.graph_recreated,
    )


def unchanged(scene: Scene) -> Finding:
    """A Bundle whose phase no Graph can change any more; its steps may still bring news."""
    status = scene.bundle.status
    ready = status.condition("Ready")
    return Finding(
        phase=status.phase or "Available",
        reason=ready.reason if ready else "Unknown",
        message=ready.message if ready else "",
        environments=entries_of(scene),
        graph_ref=status.graph_ref,
        graph_recreated=status.graph_recreated,
    )


def superseded(scene: Scene, newer: Bundle) -> Finding:
    started = scene.graph is not None or scene.bundle.status.graph_ref is not None
    return Finding(
        phase="Superseded",
        reason="Superseded",
        message=f"Bundle {newer.metadata.name} is newer",
        environments=entries_of(scene),
        graph_ref=scene.bundle.metadata.name if started else None,
        graph_recreated=scene.bundle.status.graph_recreated,
    )


def refused(scene: Scene, error: PromotionError) -> Finding:
    """What its author has to fix; a Graph that exists goes on meanwhile."""
    status = scene.bundle.status
    finding = Finding(
        phase=status.phase if status.phase == "Promoting" else "Available",
        reason="GraphNameTaken",
        message=str(error),
        environments=entries_of(scene),
        graph_ref=status.graph_ref,
        graph_recreated=status.graph_recreated,
    )
    if isinstance(error, SkipDenied):
        return replace(finding, phase="SkipDenied", reason="SkipDenied")
    if isinstance(error, InvalidSpec):
        return replace(finding, phase="Failed", reason="InvalidSpec", invalid=(error.problems[0].reason, str(error)))
    return finding


def without_label(scene: Scene) -> Finding:
    problem = Problem(
        f"Bundle/{scene.bundle.metadata.name}",
        f"metadata.labels[{LABEL_PIPELINE}]",
        "NoPipeline",
        "the Bundle does not say which Pipeline it is for",
        "set the label to the name of a Pipeline",
    )
    return refused(scene, InvalidSpec([problem]))


def pipeline_missing(scene: Scene) -> Problem:
    return Problem(
        f"Bundle/{scene.bundle.metadata.name}",
        f"metadata.labels[{LABEL_PIPELINE}]",
        "PipelineNotFound",
        f"there is no Pipeline {scene.label} in namespace {scene.bundle.metadata.namespace}",
        "the Bundle goes on as soon as there is one",
    )


def label_warning(scene: Scene) -> tuple[str, str] | None:
    label = labels_of(scene.current).get(LABEL_PIPELINE)
    if not scene.label or label == scene.label:
        return None
    return (
        "PipelineLabelChanged",
        f"the Bundle belongs to Pipeline {scene.label} since it was first seen; its label says {label} and is ignored",
    )


def intent_moved(bundle: Bundle) -> bool:
    """Whether the Graph may lack environments that the Bundle is meant for by now."""
    return was_refused(bundle.status) or bundle.metadata.generation != bundle.status.observed_generation


def was_refused(status: BundleStatus) -> bool:
    """Whether the last word on a Bundle was that its author has something to fix."""
    return status.condition("InvalidSpec") is not None or status.phase == "SkipDenied"


def asks_for_more(scene: Scene) -> bool:
    """Whether the intent has moved beyond the environments that were once promoted to."""
    if scene.pipeline is None or not intent_moved(scene.bundle):
        return False
    try:
        route = find_route(scene.pipeline, scene.bundle)
    except InvalidSpec:
        return False
    return not set(route.upstreams) <= set(scene.bundle.status.environments)


def has_come_to_rest(scene: Scene) -> bool:
    """Whether no step has landed without having finished: those the agent abandoned have failed."""
    deleting = scene.graph is not None and "deletionTimestamp" in scene.graph["metadata"]
    return not deleting and all(step.status.state in ("Verified", "Failed") for step in scene.steps.values())
