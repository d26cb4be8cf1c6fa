"""Attacks on what org policy binds to: each names or spells something so that a gate would not be found.

Which gates a Graph has is decided by translation, which most of these tests call; the others show it in a world.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kardinal.kube import Invalid
from kardinal.objects import GRAPH, JsonObject
from kardinal.promotion.api import Bundle, Pipeline, PolicyGate
from kardinal.promotion.kinds import BUNDLE, PIPELINE, POLICY_GATE, PROMOTION_STEP
from kardinal.promotion.policy.matching import collect
from kardinal.promotion.translation.errors import InvalidSpec, SkipDenied
from kardinal.promotion.translation.repository import Features
from kardinal.promotion.translation.translate import translate, validate
from kardinal_controller.program import ControlPlane
from tests.bundles.reading import condition, phase
from tests.support.names import DEV, POLICIES, PROD, STAGING, TEAM, of_run
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.programs import start_controller
from tests.support.registry import REGISTRY
from tests.support.world import World
from tests.translation.values import MORNING

EXAMPLES = Path(__file__).parents[2] / "examples"
REPOSITORY = "file:///srv/git/gitops.git"
REMOTE = "https://git.example.org/acme/gitops"
FEATURES = Features(registry=REGISTRY, allow_local_repositories=True)


@pytest.fixture
async def plane(world: World) -> ControlPlane:
    return await start_controller(world, standalone=False)


def org_gate(name: str = "guard", expression: str = "false", **match: list[str]) -> JsonObject:
    """Return a gate of the organisation that selects by `match` alone."""
    return gate(name, expression, applies_to=None, namespace=POLICIES, match=match)


def writing(name: str, path: str | None, **fields: Any) -> JsonObject:
    """Return an environment that follows no other."""
    made = environment(name, dependsOn=[], **fields)
    return {key: value for key, value in (made | {"path": path}).items() if value is not None}


def translated(way: JsonObject, gates: Iterable[JsonObject], **spec: Any) -> JsonObject:
    """Return the Graph of a Bundle with these fields."""
    made = bundle("app-1", **spec)
    made["metadata"]["uid"] = "uid-of-app-1"
    pipeline = Pipeline.model_validate(way)
    templates = collect(
        map(PolicyGate.model_validate, gates),
        pipeline=pipeline.metadata.name,
        namespace=TEAM,
        policy_namespaces=(POLICIES,),
    )
    return translate(pipeline, Bundle.model_validate(made), templates, features=FEATURES, now=MORNING)


def bound_in(graph: JsonObject) -> dict[str, set[str]]:
    """Return the gates in a Graph, `namespace/name`, for each environment with a step."""
    specs = [node["template"]["spec"] for node in graph["spec"]["nodes"] if "template" in node]
    found: dict[str, set[str]] = {spec["environment"]: set() for spec in specs if "environment" in spec}
    for origin in (spec["origin"] for spec in specs if "origin" in spec):
        found[origin["environment"]].add(f"{origin['namespace']}/{origin['name']}")
    return found


def bound(way: JsonObject, *gates: JsonObject) -> dict[str, set[str]]:
    """Return the gates that hold the environments of a Pipeline, as above."""
    return bound_in(translated(way, gates))


async def promoted(world: World) -> dict[str, set[str]]:
    """Promote a Bundle in a world; return the gates in its Graph, as above."""
    await world.apply(bundle("app-1"))
    return bound_in(await world.wait_for(GRAPH, "app-1", lambda _: True))


def held(ways: dict[str, JsonObject], guard: JsonObject) -> set[str]:
    """Return the keys of the Pipelines whose only environment the gate `guard` holds."""
    gates = {key: bound(way, guard) for key, way in ways.items()}
    assert all(list(found.values()) in ([set()], [{f"{POLICIES}/guard"}]) for found in gates.values())
    return {key for key, found in gates.items() if any(found.values())}


def only(*environments: str, among: Iterable[str], gate: str = "guard") -> dict[str, set[str]]:
    return {name: {f"{POLICIES}/{gate}"} if name in environments else set() for name in among}


def refusal(way: JsonObject) -> str:
    """Return the message of a Pipeline that is not translatable; no Bundle of it gets a Graph."""
    with pytest.raises(InvalidSpec):
        translated(way, [])
    return "; ".join(map(str, validate(Pipeline.model_validate(way), features=FEATURES)))


async def test_an_environment_by_another_name_is_held_by_the_gate_of_its_path(
    world: World, plane: ControlPlane
) -> None:
    await world.apply(org_gate(paths=["environments/prod"]))
    await world.apply(
        pipeline(REPOSITORY, environments=[writing(DEV, f"apps/{DEV}"), writing("prd", "environments/prod")])
    )
    assert await promoted(world) == only("prd", among=(DEV, "prd"))
    await world.wait_for(POLICY_GATE, "app-1-prd-guard", lambda obj: obj.get("status", {}).get("ready") is False)
    await world.settle()
    steps = {step["spec"]["environment"] for step in await world.objects(PROMOTION_STEP)}
    assert steps == {DEV}


def test_the_example_gates_hold_an_environment_by_another_name() -> None:
    documents = [document for document in yaml.safe_load_all((EXAMPLES / "gates.yaml").read_text()) if document]
    for document in documents:
        document["metadata"]["namespace"] = POLICIES
    way = [writing("prd", "environments/prod"), writing("prod", "environments/sandbox")]
    expected = {f"{POLICIES}/no-weekend-deploys", f"{POLICIES}/staging-soak"}
    assert bound(pipeline(REPOSITORY, environments=way), *documents) == {"prd": expected, "prod": set()}


def test_a_gate_holds_every_spelling_of_its_path_and_what_lies_above_and_below() -> None:
    spellings = ("environments/prod", "./environments//prod/", "environments/prod/eu", "environments", ".", "./")
    free = ("environments/production", "environments/Prod", "apps/environments/prod")
    ways = {path: pipeline(REPOSITORY, environments=[writing("it", path)]) for path in spellings + free}
    assert held(ways, org_gate(paths=["environments/prod"])) == set(spellings)


def test_the_default_path_of_an_environment_is_held() -> None:
    way = pipeline(REPOSITORY, environments=[writing("prod", None), writing("dev", None)])
    assert bound(way, org_gate(paths=["environments/pr*"])) == only("prod", among=("prod", "dev"))


def test_a_step_that_edits_below_its_environment_is_held() -> None:
    steps = [
        {"uses": "git-clone"},
        {"uses": "kustomize-set-image", "config": {"path": "prod"}},
        {"uses": "git-commit"},
        {"uses": "git-push"},
        {"uses": "health-check"},
    ]
    way = pipeline(REPOSITORY, environments=[writing("all", "environments", steps=steps), writing(DEV, "apps")])
    assert bound(way, org_gate(paths=["environments/prod"])) == only("all", among=("all", DEV))


@pytest.mark.parametrize("pattern", ["git.example.org/acme/gitops", "ssh://git@GIT.example.org/Acme/*.git"])
def test_a_gate_holds_every_spelling_of_its_repository(pattern: str) -> None:
    spellings = {
        REMOTE,
        "HTTPS://GIT.Example.ORG:443/Acme/GitOps.git/",
        "https://git.example.org./acme/gitops",
        "https://git.example.org//acme/./gitops/.git",
        "https://git.example.org/%61cme%2Fgitops",
        "ssh://git@git.example.org:2222/acme/gitops",
        "git@git.example.org:acme/gitops.git",
    }
    longer = "https://git.example.org/acme/gitops2"
    free = {longer, "ssh://git@git.example.org/other/gitops", "https://git.example.org/other/gitops"}
    ways = {}
    for url in spellings | free:
        ways[url] = pipeline(url, environments=[writing(DEV, "dev")], provider="git")
        ways[url]["spec"]["git"]["secretRef"] = {"name": "git"}
    expected = spellings | {longer} if "*" in pattern else spellings
    assert held(ways, org_gate(repositories=[pattern])) == expected


async def test_a_pipeline_that_is_refused_gets_no_graph(world: World, plane: ControlPlane) -> None:
    made = pipeline(f"{REMOTE};v=1", environments=[writing(DEV, "dev")], provider="git")
    await world.apply(made, bundle("app-1"))
    found = await world.wait_for(PIPELINE, "my-app", lambda obj: condition(obj) is not None)
    failed = await world.wait_for(BUNDLE, "app-1", phase("Failed"))
    assert condition(failed, "InvalidSpec") is not None
    assert await world.objects(GRAPH) == []
    ready = condition(found)
    assert ready is not None
    assert (ready["status"], ready["message"]) == ("False", refusal(made))


@pytest.mark.parametrize(
    "url",
    [
        "https://git.example.org/acme;v=1/gitops",
        "https://git.example.org/acme%252Fgitops",
        "https://git.example.org/acme%5Cgitops",
        "https://167772161/acme/gitops",
        "https://0x0a.1/acme/gitops",
    ],
)
def test_a_spelling_that_servers_read_in_several_ways_is_refused(url: str) -> None:
    assert "spec.git.url" in refusal(pipeline(url, environments=[writing(DEV, "dev")], provider="git"))


@pytest.mark.parametrize(
    "url", ["file:///proc/self/root/srv/git/gitops.git", "/proc/1/cwd/gitops.git", "//dev/./fd/3/gitops.git"]
)
def test_a_repository_through_the_file_system_of_processes_is_refused(url: str) -> None:
    assert "spec.git.url" in refusal(pipeline(url, environments=[writing(DEV, "dev")]))


@pytest.mark.parametrize("branch", ["refs/heads/main", "refs/heads/refs/heads/main"])
def test_a_full_reference_is_refused_as_a_branch(branch: str) -> None:
    message = refusal(pipeline(REPOSITORY, git={"url": REPOSITORY, "provider": "local", "branch": branch}))
    assert "spec.git.branch" in message
    assert "write main" in message


def test_the_branch_of_a_proposal_is_refused_as_a_target() -> None:
    branch = f"kardinal/app-0/{PROD}"
    way = pipeline(REPOSITORY, git={"url": REPOSITORY, "provider": "local", "branch": branch})
    assert "spec.git.branch" in refusal(way)


def test_a_gate_holds_the_branch_that_is_written_to() -> None:
    patterns = {
        "exact": "main",
        "full": "refs/heads/main",
        "some": "ma*",
        "all": "**",
        "other": "release/*",
        "case": "Main",
    }
    gates = [org_gate(name, branches=[pattern]) for name, pattern in patterns.items()]
    way = pipeline(REPOSITORY, environments=[writing(DEV, "dev", approval="pr-review")])
    assert bound(way, *gates) == {DEV: {f"{POLICIES}/{name}" for name in ("exact", "full", "some", "all")}}


def test_lists_are_alternatives_and_fields_hold_together() -> None:
    gates = [
        org_gate("both", branches=["main"], paths=["prod", "canary"]),
        org_gate("elsewhere", namespaces=["other-*"], paths=["prod", "canary"]),
        gate("named", "false", applies_to=DEV, namespace=POLICIES, match={"paths": ["prod", "dev"]}),
    ]
    way = [writing(DEV, "dev"), writing(PROD, "prod"), writing(STAGING, "canary")]
    both = {f"{POLICIES}/both"}
    assert bound(pipeline(REPOSITORY, environments=way), *gates) == {
        DEV: {f"{POLICIES}/named"},
        PROD: both,
        STAGING: both,
    }


async def test_a_match_that_would_bind_by_accident_is_refused(world: World) -> None:
    accidents: list[JsonObject] = [
        {},
        {"paths": []},
        {"paths": [""]},
        {"path": ["environments/prod"]},
        {"paths": ["environments/{prod,staging}"]},
        {"paths": ["environments/pro?"]},
        {"paths": ["!environments/dev"]},
        {"paths": ["../prod"]},
        {"paths": ["prod**"]},
        {"paths": ["**/a/**/b"]},
        {"repositories": ["git.example.org/**/a/**"]},
        {"branches": ["*" * 300]},
        {"paths": ["a"] * 33},
        {"paths": ["a/" * 16]},
        {"paths": ["*a" * 9]},
    ]
    for match in accidents:
        made = gate("guard", "false", applies_to=None, namespace=POLICIES, match=match)
        with pytest.raises(Invalid):
            await world.client.create(POLICY_GATE, made)


def test_patterns_that_are_made_to_be_slow_are_decided_in_time() -> None:
    slow = "*a" * 6
    deep = "a/" * 7 + "*/" * 7
    gates = [
        gate("slow", "true", applies_to=None, match={"paths": [f"{slow}b{n}" for n in range(32)]}),
        *(
            gate(f"deep-{kind}", "true", applies_to=None, match={"paths": [f"{deep}{kind}{n}" for n in range(32)]})
            for kind in range(6)
        ),
        gate("wide", "true", applies_to=None, match={"repositories": [f"**/{slow}b{n}" for n in range(32)]}),
    ]
    way = [writing(f"e{number}", "a/" * 14 + f"x{number}/" + "a" * 200) for number in range(64)]
    url = "https://git.example.org/" + "a/" * 900
    before = time.process_time()
    assert set(bound(pipeline(url, environments=way, provider="git"), *gates)) == {f"e{number}" for number in range(64)}
    assert time.process_time() - before < 5


async def test_gates_of_a_team_that_are_too_many_stop_its_own_bundles_only(world: World, plane: ControlPlane) -> None:
    patterns = [f"*a/*a/*a/*{number}" for number in range(32)]
    many = [gate(f"many-{number}", "true", applies_to=None, match={"paths": patterns}) for number in range(9)]
    elsewhere = of_run("elsewhere")
    await world.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": elsewhere}})
    await world.apply(*many, pipeline(REPOSITORY), pipeline(REPOSITORY, namespace=elsewhere))
    await world.apply(bundle("app-1"), bundle("app-1", namespace=elsewhere))
    await world.wait_for(GRAPH, "app-1", lambda _: True, namespace=elsewhere)
    failed = await world.wait_for(BUNDLE, "app-1", phase("Failed"))
    invalid = condition(failed, "InvalidSpec")
    assert invalid is not None
    assert invalid["reason"] == "TooManyGates"
    await world.delete(POLICY_GATE, "many-0")
    await world.apply(bundle("app-2"))
    await world.wait_for(GRAPH, "app-2", lambda _: True)


async def test_a_team_gate_by_the_name_of_an_org_gate_does_not_take_its_place(
    world: World, plane: ControlPlane
) -> None:
    await world.apply(org_gate(paths=["prod"]), gate("guard", "true", applies_to=None, match={"paths": ["prod"]}))
    await world.apply(pipeline(REPOSITORY, environments=[writing("prd", "prod"), writing(DEV, "dev")]))
    assert await promoted(world) == {"prd": {f"{POLICIES}/guard", f"{TEAM}/guard"}, DEV: set()}
    instances = await world.until(lambda: world.objects(POLICY_GATE, TEAM, labels="kardinal.io/bundle"))
    await world.wait_for(
        POLICY_GATE,
        next(obj["metadata"]["name"] for obj in instances if obj["spec"]["origin"]["scope"] == "org"),
        lambda obj: obj.get("status", {}).get("ready") is False,
    )


async def test_an_org_gate_says_when_it_selects_by_what_its_subjects_choose(world: World, plane: ControlPlane) -> None:
    """Write gates that select by names, by namespaces, and by facts alone, which are fine."""
    place = {"paths": ["environments/prod"]}
    elsewhere = "a Pipeline of another namespace that writes to the same place is not held"
    gates: dict[str, tuple[JsonObject, str, str]] = {
        "label": ({"applies_to": PROD}, "SelectsByName", "name of an environment"),
        "list": ({"appliesTo": [PROD]}, "SelectsByName", "name of an environment"),
        "both": ({"applies_to": PROD, "match": place}, "SelectsByName", "name of an environment"),
        "pipeline": ({"match": {"pipelines": ["shop-*"]}}, "SelectsByName", "name of a Pipeline"),
        "left-out": (
            {"match": {"namespaces": ["victim"], "branches": ["main"], **place}},
            "SelectsByNamespace",
            elsewhere,
        ),
        "facts": ({"match": {"branches": ["main"], **place}}, "Valid", ""),
        "every-namespace": ({"match": {"namespaces": ["*"], **place}}, "Valid", ""),
        "namespaces-alone": ({"match": {"namespaces": ["victim"]}}, "Valid", ""),
    }
    await world.apply(pipeline(REPOSITORY))
    for name, (fields, _, _) in gates.items():
        chosen: dict[str, Any] = {"applies_to": None, **fields}
        await world.apply(gate(name, "false", namespace=POLICIES, **chosen))
    for name, (_, reason, message) in gates.items():
        found = await world.wait_for(
            POLICY_GATE, name, lambda obj: condition(obj, "Valid") is not None, namespace=POLICIES
        )
        valid = condition(found, "Valid")
        assert valid is not None
        assert (name, valid["reason"]) == (name, reason)
        assert message in valid["message"]
    await world.settle()
    told = {event["regarding"]["name"]: event["note"] for event in await world.events("SelectsByName")}
    assert told.keys() == {"label", "list", "both", "pipeline"}
    assert all(gates[name][2] in note for name, note in told.items())
    [event] = await world.events("SelectsByNamespace")
    assert "branches and paths" in event["note"]


async def test_a_pipeline_without_environments_does_not_keep_org_gates_from_being_checked(
    world: World, plane: ControlPlane
) -> None:
    await world.apply(pipeline(REPOSITORY, environments=[]))
    # The Pipeline is validated first: its status must not be written between the reading and the writing here.
    await world.settle()
    empty = await world.get(PIPELINE, "my-app")
    await world.client.replace(PIPELINE, empty | {"spec": {"git": {"url": REPOSITORY, "provider": "local"}}})
    await world.apply(gate("guard", "false", applies_to=None, namespace=POLICIES))
    await world.wait_for(POLICY_GATE, "guard", lambda obj: condition(obj, "Valid") is not None, namespace=POLICIES)


def test_permission_to_skip_is_for_a_path_and_not_for_a_name() -> None:
    permission = org_gate("may-skip", "true", paths=["environments/staging"])
    permission["metadata"]["labels"] = {"kardinal.io/type": "skip-permission"}
    gates = [org_gate(paths=["environments"]), permission]
    environments = [
        writing(DEV, "environments/dev"),
        writing(STAGING, "environments/prod"),
        writing("s", "environments/staging"),
    ]
    way = pipeline(REPOSITORY, environments=environments)
    with pytest.raises(SkipDenied, match=STAGING):
        translated(way, gates, intent={"skip": [STAGING]})
    assert "s" not in bound_in(translated(way, gates, intent={"skip": ["s"]}))


def test_one_directory_under_two_names_is_refused() -> None:
    way = [writing("prod", None), writing("preview", "./environments//prod/")]
    message = refusal(pipeline(REPOSITORY, environments=way))
    assert "spec.environments[1].path" in message
    assert "spec.environments[0].path" in message


async def test_pipelines_of_two_namespaces_on_one_path_are_held_and_told_nothing(
    world: World, plane: ControlPlane
) -> None:
    elsewhere = of_run("elsewhere")
    await world.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": elsewhere}})
    await world.apply(org_gate(paths=["environments/prod"]))
    way = [writing("prd", "environments/prod"), writing(DEV, "apps")]
    await world.apply(pipeline(REPOSITORY, environments=way))
    await world.apply(pipeline(REPOSITORY, environments=way, namespace=elsewhere))
    assert await promoted(world) == only("prd", among=("prd", DEV))
    await world.settle()
    for namespace in (TEAM, elsewhere):
        assert condition(await world.get(PIPELINE, "my-app", namespace), "SharedPath") is None


def test_instances_carry_no_match() -> None:
    graph = translated(pipeline(REPOSITORY, environments=[writing(DEV, "dev")]), [org_gate(paths=["dev"])])
    assert bound_in(graph) == only(DEV, among=[DEV])
    [instance] = [node["template"] for node in graph["spec"]["nodes"] if node["id"].startswith("guard")]
    assert instance["kind"] == "PolicyGate"
    assert "match" not in instance["spec"]
