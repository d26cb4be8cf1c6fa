"""An API server accepts and refuses by the schemas of the CRDs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from kardinal.kube import Invalid, PatchType
from kardinal.promotion.kinds import BUNDLE
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


Change = Callable[[JsonObject], None]


def _put(path: str, value: Any) -> Change:
    *parents, last = [int(part) if part.isdigit() else part for part in path.split("/")]

    def change(document: JsonObject) -> None:
        target: Any = document
        for part in parents:
            if part == "pullRequest":
                target.setdefault(part, {})
            target = target[part]
        target[last] = value

    return change


_LOGINS = ("../admin", "a/b", "alice\n", "a b", "a?b=c", "a%2fb", ".a", "a" * 101, "")
_NAMES = {
    "reviewers": _LOGINS,
    "assignees": _LOGINS,
    "teamReviewers": ("a/b/c", "/a", "a/", "../a", "a\n", "a?b", "a%2fb", "a" * 202),
    "labels": ("a,b", "a\nb", "\x1b[31m", " a", "a ", "a" * 51, ""),
}


WRONG: list[tuple[str, Change, str]] = [
    (examples.PIPELINE, _put("spec/git/provider", "s v n"), "spec.git.provider"),
    (examples.PIPELINE, _put("spec/git", {"branch": "main"}), "spec.git.url"),
    *(
        (examples.PIPELINE, _put(f"spec/git/pullRequest/{name}", [value]), f"spec.git.pullRequest.{name}[0]")
        for name, values in _NAMES.items()
        for value in values
    ),
    *(
        (
            examples.PIPELINE,
            _put(f"spec/git/pullRequest/{name}", [f"n{index}" for index in range(21)]),
            f"spec.git.pullRequest.{name}",
        )
        for name in _NAMES
    ),
    (examples.PIPELINE, _put("spec/git/pullRequest/labels", ["a", "a"]), "spec.git.pullRequest.labels[1]"),
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
]


async def _refusal(world: World, example: str, change: Change) -> Invalid | None:
    """Return how a changed example is refused; None if it is accepted."""
    document = _load(example)
    change(document)
    try:
        await _create(world, document)
    except Invalid as refused:
        return refused
    return None


async def test_a_wrong_field_is_refused_by_its_name(world: World) -> None:
    """One world is enough for all, because nothing of what is refused stays in it."""
    for example, change, field in WRONG:
        refused = await _refusal(world, example, change)
        assert refused is not None, f"{field} was accepted"
        assert field in refused.fields


def _health(**fields: Any) -> Change:
    return _put("spec/environments/0/health", fields)


IGNORED = [
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
]


async def test_a_field_that_would_be_ignored_is_refused_with_the_one_to_write(world: World) -> None:
    for change, field, remedy in IGNORED:
        refused = await _refusal(world, examples.PIPELINE, change)
        assert refused is not None, f"{field} was accepted"
        assert f"spec.environments[0].{field}" in refused.fields
        assert remedy in refused.message


@pytest.mark.parametrize(
    "health",
    [
        {"resource": {"kind": "Deployment", "name": "app", "condition": "Available"}},
        {"resource": {"name": "app", "condition": "Available"}},
        {"resource": {"kind": "StatefulSet", "name": "db", "namespace": "data"}},
    ],
)
async def test_health_fields_of_the_named_type_are_accepted(world: World, health: JsonObject) -> None:
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
async def test_bundle_spec_is_immutable(world: World, patch: JsonObject) -> None:
    stored = await _create(world, _load(examples.IMAGE_BUNDLE))
    name = stored["metadata"]["name"]
    with pytest.raises(Invalid) as refused:
        await world.client.patch(BUNDLE, name, TEAM, {"spec": patch}, kind=PatchType.MERGE)
    assert "immutable" in refused.value.message


async def test_target_of_a_bundle_may_change(world: World) -> None:
    stored = await _create(world, _load(examples.IMAGE_BUNDLE))
    patched = await world.client.patch(
        BUNDLE, stored["metadata"]["name"], TEAM, {"spec": {"intent": {"target": "dev"}}}, kind=PatchType.MERGE
    )
    assert patched["spec"]["intent"]["target"] == "dev"
