"""An API server accepts and refuses by the schemas of the CRDs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from kardinal.api import BUNDLE
from kardinal.kube import Invalid, PatchType
from tests.api import examples
from tests.support.names import TEAM
from tests.support.world import KINDS, World

JsonObject = dict[str, Any]


def _load(text: str) -> JsonObject:
    """Return a document, put into the namespace of this run."""
    document: JsonObject = yaml.safe_load(text)
    document["metadata"]["namespace"] = TEAM
    return document


async def _create(world: World, document: JsonObject) -> JsonObject:
    return await world.client.create(KINDS[document["apiVersion"], document["kind"]], document)


@pytest.mark.parametrize("name", examples.ALL)
async def test_an_example_of_the_reference_design_is_accepted_as_written(world: World, name: str) -> None:
    document = _load(examples.ALL[name])
    stored = await _create(world, document)
    for key, value in document["spec"].items():
        assert _contains(stored["spec"][key], value), key


def _contains(stored: Any, given: Any) -> bool:
    """Return whether everything given was kept; the server may have added defaults."""
    if isinstance(given, dict):
        return isinstance(stored, dict) and all(_contains(stored.get(key), value) for key, value in given.items())
    if isinstance(given, list):
        return len(stored) == len(given) and all(map(_contains, stored, given))
    return bool(stored == given)


def _put(path: str, value: Any) -> Callable[[JsonObject], None]:
    *parents, last = [int(part) if part.isdigit() else part for part in path.split("/")]

    def change(document: JsonObject) -> None:
        target: Any = document
        for part in parents:
            target = target[part]
        target[last] = value

    return change


@pytest.mark.parametrize(
    ("example", "change", "field"),
    [
        (examples.PIPELINE, _put("spec/git/provider", "s v n"), "spec.git.provider"),
        (examples.PIPELINE, _put("spec/git", {"branch": "main"}), "spec.git.url"),
        (examples.PIPELINE, _put("spec/environments/0/name", "Dev"), "spec.environments[0].name"),
        (examples.PIPELINE, _put("spec/environments/1/name", "dev"), "spec.environments[1]"),
        (examples.PIPELINE, _put("spec/environments/0/path", "/etc"), "spec.environments[0].path"),
        (examples.PIPELINE, _put("spec/environments/0/path", "a/../../b"), "spec.environments[0].path"),
        (examples.PIPELINE, _put("spec/environments/0/path", ".."), "spec.environments[0].path"),
        (examples.PIPELINE, _put("spec/environments/2/approval", "maybe"), "spec.environments[2].approval"),
        (examples.PIPELINE, _put("spec/environments/2/health/timeout", "soon"), "spec.environments[2].health.timeout"),
        (examples.PIPELINE, _put("spec/historyLimit", 0), "spec.historyLimit"),
        (examples.IMAGE_BUNDLE, _put("spec/type", "chart"), "spec.type"),
        (examples.IMAGE_BUNDLE, _put("spec/artifacts/images/0/reference", ""), "spec.artifacts.images[0].reference"),
        (examples.CONFIG_BUNDLE, _put("spec/artifacts/gitCommit/sha", "main"), "spec.artifacts.gitCommit.sha"),
        (examples.POLICY_GATE, _put("spec/expression", ""), "spec.expression"),
        (examples.POLICY_GATE, _put("spec/recheckInterval", "-5m"), "spec.recheckInterval"),
        (examples.METRIC_CHECK, _put("spec/noDataBehavior", "panic"), "spec.noDataBehavior"),
        (examples.METRIC_CHECK, _put("spec/successCondition", "high"), "spec.successCondition"),
        (examples.SUBSCRIPTION, _put("spec/source/type", "ftp"), "spec.source.type"),
    ],
)
async def test_a_wrong_field_is_refused_by_its_name(
    world: World, example: str, change: Callable[[JsonObject], None], field: str
) -> None:
    document = _load(example)
    change(document)
    with pytest.raises(Invalid) as refused:
        await _create(world, document)
    assert field in refused.value.fields


def _health(**fields: Any) -> Callable[[JsonObject], None]:
    return _put("spec/environments/0/health", fields)


@pytest.mark.parametrize(
    ("change", "field", "remedy"),
    [
        *(
            (_health(**{name: "app"}), f"health.{name}", f"write health.resource.{name}; an object of a delivery tool")
            for name in ("kind", "name", "namespace")
        ),
        *(
            (
                _health(resource={"kind": kind, "name": "db", "condition": "Available"}),
                "health.resource.condition",
                "condition is of a Deployment: leave it out",
            )
            for kind in ("StatefulSet", "DaemonSet", "Job", "CronJob")
        ),
    ],
)
async def test_a_field_that_would_be_ignored_is_refused_with_the_one_to_write(
    world: World, change: Callable[[JsonObject], None], field: str, remedy: str
) -> None:
    document = _load(examples.PIPELINE)
    change(document)
    with pytest.raises(Invalid) as refused:
        await _create(world, document)
    assert f"spec.environments[0].{field}" in refused.value.fields
    assert remedy in refused.value.message


@pytest.mark.parametrize(
    "health",
    [
        {"resource": {"kind": "Deployment", "name": "app", "condition": "Available"}},
        {"resource": {"name": "app", "condition": "Available"}},
        {"resource": {"kind": "StatefulSet", "name": "db", "namespace": "data"}},
    ],
)
async def test_what_health_names_in_the_right_place_is_taken(world: World, health: JsonObject) -> None:
    document = _load(examples.PIPELINE)
    document["spec"]["environments"][0]["health"] = health
    stored = await _create(world, document)
    assert stored["spec"]["environments"][0]["health"]["resource"] == health["resource"]


async def test_a_path_may_hold_dots_that_are_no_segment(world: World) -> None:
    document = _load(examples.PIPELINE)
    document["spec"]["environments"][0]["path"] = "a..b/..c/d.."
    stored = await _create(world, document)
    assert stored["spec"]["environments"][0]["path"] == "a..b/..c/d.."


@pytest.mark.parametrize(
    "patch",
    [
        {"type": "config"},
        {"artifacts": {"images": [{"name": "my-app", "reference": "ghcr.io/myorg/my-app:2"}]}},
        {"provenance": {"author": "mallory"}},
        {"provenance": None},
    ],
    ids=["type", "artifacts", "provenance", "provenance removed"],
)
async def test_what_a_bundle_is_never_changes(world: World, patch: JsonObject) -> None:
    stored = await _create(world, _load(examples.IMAGE_BUNDLE))
    name = stored["metadata"]["name"]
    with pytest.raises(Invalid) as refused:
        await world.client.patch(BUNDLE, name, TEAM, {"spec": patch}, kind=PatchType.MERGE)
    assert "immutable" in refused.value.message


async def test_how_far_a_bundle_goes_may_change(world: World) -> None:
    stored = await _create(world, _load(examples.IMAGE_BUNDLE))
    patched = await world.client.patch(
        BUNDLE, stored["metadata"]["name"], TEAM, {"spec": {"intent": {"target": "dev"}}}, kind=PatchType.MERGE
    )
    assert patched["spec"]["intent"]["target"] == "dev"
