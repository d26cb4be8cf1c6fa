"""Objects of GitOps tools whose fields have shapes and contents that no tool gives them.

Who may install a CustomResourceDefinition, or write the status of such an object, chooses what an adapter reads.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from kardinal.objects import JsonObject
from kardinal_agent.health import Adapter
from kardinal_agent.health.argo_rollouts import ArgoRollouts
from kardinal_agent.health.argocd import ArgoCD
from kardinal_agent.health.flagger import Flagger
from kardinal_agent.health.flux import Flux
from tests.health.argocd_cases import application
from tests.health.flux_cases import helm_release, is_, kustomization
from tests.health.rollout_cases import canary, rollout
from tests.health.tools import NEW, change, deployment, judged, objects_of, promotion, promotion_step

STRANGE: tuple[Any, ...] = (
    None,
    True,
    -1,
    2**70,
    "",
    "x",
    "2026-13-41T99:99:99Z",
    "2026-11-21T12:00:00",
    [],
    ["x"],
    [None],
    {},
    {"x": None},
    [{"type": ["x"]}],
)

HEALTHS: dict[str, JsonObject] = {
    "argocd": {"type": "argocd", "argocd": {"name": "app"}},
    "kustomization": {"type": "flux", "flux": {"name": "app"}},
    "helm_release": {"type": "flux", "flux": {"kind": "HelmRelease", "name": "app", "namespace": "prod"}},
    "rollout": {"type": "argoRollouts", "argoRollouts": {"name": "app", "namespace": "prod"}},
    "canary": {"type": "flagger", "flagger": {"name": "app", "namespace": "prod"}},
}
SAMPLES: dict[str, tuple[Adapter, JsonObject, list[JsonObject]]] = {
    "argocd": (ArgoCD(), application(), []),
    "kustomization": (Flux(), kustomization(), [deployment()]),
    "helm_release": (Flux(), helm_release(), [kustomization(), deployment()]),
    "rollout": (ArgoRollouts(), rollout(), []),
    "canary": (Flagger(), canary(), [deployment(), deployment(name="app-primary")]),
}
IDENTITY = {("kind",), ("apiVersion",), ("metadata",), ("metadata", "name"), ("metadata", "namespace")}
"""Fields that an API server checks, whatever a definition says."""


def paths(found: Any, start: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every value."""
    for name, value in found.items() if isinstance(found, dict) else enumerate(found):
        yield (*start, name)
        if isinstance(value, dict | list):
            yield from paths(value, (*start, name))


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_field_of_a_strange_shape_ends_no_judgement(sample: str) -> None:
    adapter, made, others = SAMPLES[sample]
    step = promotion_step(HEALTHS[sample])
    promoted = promotion(NEW)
    judgements = 0
    for path in set(paths(made)) - IDENTITY:
        for strange in STRANGE:
            found = copy.deepcopy(made)
            change(*path, to=strange)(found)
            assert judged(adapter, step, promoted, found, *others).state in ("progressing", "healthy", "failed")
            judgements += 1
    assert judgements > 100


@pytest.mark.parametrize("sample", SAMPLES)
def test_an_object_without_a_status_proves_nothing(sample: str) -> None:
    adapter, made, others = SAMPLES[sample]
    for emptied in ("status", "spec"):
        found = copy.deepcopy(made)
        found[emptied] = {}
        assert judged(adapter, promotion_step(HEALTHS[sample]), promotion(NEW), found, *others).state != "failed"
    found = copy.deepcopy(made)
    found["status"] = {}
    assert judged(adapter, promotion_step(HEALTHS[sample]), promotion(NEW), found, *others).state == "progressing"


def test_quoted_text_of_an_object_is_short_and_marked() -> None:
    found = kustomization()
    is_("False", "HealthCheckFailed")(found)
    change("status", "conditions", 0, "message", to="secret \x1b[2J\u202e" + "x" * 100_000)(found)
    answer = judged(Flux(), promotion_step(HEALTHS["kustomization"]), promotion(NEW), found, deployment())
    assert "secret" not in answer.message
    assert "secret" in answer.details
    assert len(answer.details) < 600
    assert answer.details.isprintable()


def test_a_condition_of_a_made_up_reason_is_not_repeated_in_fixed_words() -> None:
    found = kustomization()
    is_("False", "SECRET")(found)
    answer = judged(Flux(), promotion_step(HEALTHS["kustomization"]), promotion(NEW), found, deployment())
    assert "SECRET" not in answer.message


def test_a_long_inventory_is_refused_and_not_judged_in_part() -> None:
    found = kustomization()
    entries = [
        {"id": "prod_app_apps_Deployment"},
        *({"id": f"prod_app-{index}_apps_Deployment"} for index in range(500)),
    ]
    change("status", "inventory", "entries", to=entries)(found)
    adapter = Flux()
    step = promotion_step(HEALTHS["kustomization"])
    promoted = promotion(NEW)
    assert len(adapter.related(step, promoted, objects_of(found))) == 500
    answer = judged(adapter, step, promoted, found, deployment(), *(deployment(name=f"app-{i}") for i in range(500)))
    assert answer.message.endswith("it applied 500 workloads or more: use health.type resource")


def test_many_applications_below_one_are_not_looked_at() -> None:
    below = [{"group": "argoproj.io", "kind": "Application", "name": f"app-{index}"} for index in range(10_000)]
    found = application()
    change("status", "resources", to=below)(found)
    answer = judged(ArgoCD(), promotion_step(HEALTHS["argocd"]), promotion(NEW), found)
    assert answer.state == "progressing"
