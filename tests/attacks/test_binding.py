"""Attacks on what org policy binds to: each names or spells something so that a gate would not be found."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kardinal.api import BUNDLE, PIPELINE, POLICY_GATE, PROMOTION_STEP
from kardinal.kube import Invalid
from kardinal.objects import GRAPH, JsonObject
from kardinal_controller.program import Controller
from tests.bundles.reading import condition, phase
from tests.support.names import DEV, POLICIES, PROD, STAGING, TEAM, of_run
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.programs import start_controller
from tests.support.world import World

EXAMPLES = Path(__file__).parents[2] / "examples"
REPOSITORY = "file:///srv/git/gitops.git"
REMOTE = "https://git.example.org/acme/gitops"


@pytest.fixture
async def plane(world: World) -> Controller:
    return await start_controller(world, standalone=False)


def org_gate(name: str = "guard", expression: str = "false", **match: list[str]) -> JsonObject:
    """Return a gate of the organisation that selects by `match` alone."""
    return gate(name, expression, applies_to=None, namespace=POLICIES, match=match)


def writing(name: str, path: str | None, **fields: Any) -> JsonObject:
    """Return an environment that follows no other."""
    made = environment(name, dependsOn=[], **fields)
    return {key: value for key, value in (made | {"path": path}).items() if value is not None}


async def bound(world: World, name: str = "app-1", *, pipeline: str = "my-app") -> dict[str, set[str]]:
    """Promote a Bundle; return the gates in the Graph, `namespace/name`, for each environment with a step."""
    await world.apply(bundle(name, pipeline=pipeline))
    graph = await world.wait_for(GRAPH, name, lambda _: True)
    specs = [node["template"]["spec"] for node in graph["spec"]["nodes"] if "template" in node]
    found: dict[str, set[str]] = {spec["environment"]: set() for spec in specs if "environment" in spec}
    for origin in (spec["origin"] for spec in specs if "origin" in spec):
        found[origin["environment"]].add(f"{origin['namespace']}/{origin['name']}")
    return found


def only(*environments: str, among: Iterable[str], gate: str = "guard") -> dict[str, set[str]]:
    return {name: {f"{POLICIES}/{gate}"} if name in environments else set() for name in among}


async def refused(world: World, made: JsonObject) -> str:
    """Apply a Pipeline and return the message of Ready, which is False; no Bundle of it gets a Graph."""
    await world.apply(made, bundle("app-1"))
    found = await world.wait_for(PIPELINE, "my-app", lambda obj: condition(obj) is not None)
    failed = await world.wait_for(BUNDLE, "app-1", phase("Failed"))
    assert condition(failed, "InvalidSpec") is not None
    assert await world.objects(GRAPH) == []
    ready = condition(found)
    assert ready is not None
    assert ready["status"] == "False"
    return str(ready["message"])


async def test_an_environment_by_another_name_is_held_by_the_gate_of_its_path(world: World, plane: Controller) -> None:
    await world.apply(org_gate(paths=["environments/prod"]))
    await world.apply(
        pipeline(REPOSITORY, environments=[writing(DEV, f"apps/{DEV}"), writing("prd", "environments/prod")])
    )
    assert await bound(world) == only("prd", among=(DEV, "prd"))
    await world.wait_for(POLICY_GATE, "app-1-prd-guard", lambda obj: obj.get("status", {}).get("ready") is False)
    await world.settle()
    steps = {step["spec"]["environment"] for step in await world.objects(PROMOTION_STEP)}
    assert steps == {DEV}


async def test_the_example_gates_hold_an_environment_by_another_name(world: World, plane: Controller) -> None:
    documents = [document for document in yaml.safe_load_all((EXAMPLES / "gates.yaml").read_text()) if document]
    for document in documents:
        document["metadata"]["namespace"] = POLICIES
    await world.apply(*documents)
    way = [writing("prd", "environments/prod"), writing("prod", "environments/sandbox")]
    await world.apply(pipeline(REPOSITORY, environments=way))
    held = {f"{POLICIES}/no-weekend-deploys", f"{POLICIES}/staging-soak"}
    assert await bound(world) == {"prd": held, "prod": set()}


@pytest.mark.parametrize(
    ("path", "holds"),
    [
        ("environments/prod", True),
        ("./environments//prod/", True),
        ("environments/prod/eu", True),
        ("environments", True),
        (".", True),
        ("./", True),
        ("environments/production", False),
        ("environments/Prod", False),
        ("apps/environments/prod", False),
    ],
)
async def test_a_gate_holds_every_spelling_of_its_path_and_what_lies_above_and_below(
    world: World, plane: Controller, path: str, holds: bool
) -> None:
    await world.apply(org_gate(paths=["environments/prod"]))
    await world.apply(pipeline(REPOSITORY, environments=[writing("it", path)]))
    assert await bound(world) == only(*["it"] * holds, among=["it"])


async def test_the_default_path_of_an_environment_is_held(world: World, plane: Controller) -> None:
    await world.apply(org_gate(paths=["environments/pr*"]))
    await world.apply(pipeline(REPOSITORY, environments=[writing("prod", None), writing("dev", None)]))
    assert await bound(world) == only("prod", among=("prod", "dev"))


async def test_a_step_that_edits_below_its_environment_is_held(world: World, plane: Controller) -> None:
    steps = [
        {"uses": "git-clone"},
        {"uses": "kustomize-set-image", "config": {"path": "prod"}},
        {"uses": "git-commit"},
        {"uses": "git-push"},
        {"uses": "health-check"},
    ]
    await world.apply(org_gate(paths=["environments/prod"]))
    way = [writing("all", "environments", steps=steps), writing(DEV, "apps")]
    await world.apply(pipeline(REPOSITORY, environments=way))
    assert await bound(world) == only("all", among=("all", DEV))


@pytest.mark.parametrize(
    ("url", "holds"),
    [
        (REMOTE, True),
        ("HTTPS://GIT.Example.ORG:443/Acme/GitOps.git/", True),
        ("https://git.example.org./acme/gitops", True),
        ("https://git.example.org//acme/./gitops/.git", True),
        ("https://git.example.org/%61cme%2Fgitops", True),
        ("ssh://git@git.example.org:2222/acme/gitops", True),
        ("git@git.example.org:acme/gitops.git", True),
        ("ssh://git@git.example.org/other/gitops", False),
        ("https://git.example.org/acme/gitops2", False),
        ("https://git.example.org/other/gitops", False),
    ],
)
@pytest.mark.parametrize("pattern", ["git.example.org/acme/gitops", "ssh://git@GIT.example.org/Acme/*.git"])
async def test_a_gate_holds_every_spelling_of_its_repository(
    world: World, plane: Controller, url: str, pattern: str, holds: bool
) -> None:
    holds = holds or ("*" in pattern and url.endswith("gitops2"))
    made = pipeline(url, environments=[writing(DEV, "dev")], provider="git")
    made["spec"]["git"]["secretRef"] = {"name": "git"}
    await world.apply(org_gate(repositories=[pattern]), made)
    assert await bound(world) == only(*[DEV] * holds, among=[DEV])


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
async def test_a_spelling_that_servers_read_in_several_ways_is_refused(
    world: World, plane: Controller, url: str
) -> None:
    made = pipeline(url, environments=[writing(DEV, "dev")], provider="git")
    assert "spec.git.url" in await refused(world, made)


@pytest.mark.parametrize(
    "url", ["file:///proc/self/root/srv/git/gitops.git", "/proc/1/cwd/gitops.git", "//dev/./fd/3/gitops.git"]
)
async def test_a_repository_through_the_file_system_of_processes_is_refused(
    world: World, plane: Controller, url: str
) -> None:
    assert "spec.git.url" in await refused(world, pipeline(url, environments=[writing(DEV, "dev")]))


@pytest.mark.parametrize("branch", ["refs/heads/main", "refs/heads/refs/heads/main"])
async def test_a_full_reference_is_refused_as_a_branch(world: World, plane: Controller, branch: str) -> None:
    made = pipeline(REPOSITORY, git={"url": REPOSITORY, "provider": "local", "branch": branch})
    message = await refused(world, made)
    assert "spec.git.branch" in message
    assert "write main" in message


async def test_the_branch_of_a_proposal_is_refused_as_a_target(world: World, plane: Controller) -> None:
    branch = f"kardinal/app-0/{PROD}"
    made = pipeline(REPOSITORY, git={"url": REPOSITORY, "provider": "local", "branch": branch})
    assert "spec.git.branch" in await refused(world, made)


@pytest.mark.parametrize(
    ("pattern", "holds"),
    [("main", True), ("refs/heads/main", True), ("ma*", True), ("**", True), ("release/*", False), ("Main", False)],
)
async def test_a_gate_holds_the_branch_that_is_written_to(
    world: World, plane: Controller, pattern: str, holds: bool
) -> None:
    await world.apply(org_gate(branches=[pattern]))
    await world.apply(pipeline(REPOSITORY, environments=[writing(DEV, "dev", approval="pr-review")]))
    assert await bound(world) == only(*[DEV] * holds, among=[DEV])


async def test_lists_are_alternatives_and_fields_hold_together(world: World, plane: Controller) -> None:
    await world.apply(
        org_gate("both", branches=["main"], paths=["prod", "canary"]),
        org_gate("elsewhere", namespaces=["other-*"], paths=["prod", "canary"]),
        gate("named", "false", applies_to=DEV, namespace=POLICIES, match={"paths": ["prod", "dev"]}),
    )
    way = [writing(DEV, "dev"), writing(PROD, "prod"), writing(STAGING, "canary")]
    await world.apply(pipeline(REPOSITORY, environments=way))
    both = {f"{POLICIES}/both"}
    assert await bound(world) == {DEV: {f"{POLICIES}/named"}, PROD: both, STAGING: both}


@pytest.mark.parametrize(
    "match",
    [
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
    ],
    ids=str,
)
async def test_a_match_that_would_bind_by_accident_is_refused(world: World, match: JsonObject) -> None:
    made = gate("guard", "false", applies_to=None, namespace=POLICIES, match=match)
    with pytest.raises(Invalid):
        await world.client.create(POLICY_GATE, made)


async def test_patterns_that_are_made_to_be_slow_are_decided_in_time(world: World, plane: Controller) -> None:
    slow, deep = "*a" * 6, "a/" * 7 + "*/" * 7
    await world.apply(
        gate("slow", "true", applies_to=None, match={"paths": [f"{slow}b{n}" for n in range(32)]}),
        *(
            gate(f"deep-{kind}", "true", applies_to=None, match={"paths": [f"{deep}{kind}{n}" for n in range(32)]})
            for kind in range(6)
        ),
        gate("wide", "true", applies_to=None, match={"repositories": [f"**/{slow}b{n}" for n in range(32)]}),
    )
    way = [writing(f"e{number}", "a/" * 14 + f"x{number}/" + "a" * 200) for number in range(64)]
    url = "https://git.example.org/" + "a/" * 900
    await world.apply(pipeline(url, environments=way, provider="git"))
    await world.settle()
    before = time.process_time()
    assert set(await bound(world)) == {f"e{number}" for number in range(64)}
    assert time.process_time() - before < 10


async def test_gates_of_a_team_that_are_too_many_stop_its_own_bundles_only(world: World, plane: Controller) -> None:
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


async def test_a_team_gate_by_the_name_of_an_org_gate_does_not_take_its_place(world: World, plane: Controller) -> None:
    await world.apply(org_gate(paths=["prod"]), gate("guard", "true", applies_to=None, match={"paths": ["prod"]}))
    await world.apply(pipeline(REPOSITORY, environments=[writing("prd", "prod"), writing(DEV, "dev")]))
    assert await bound(world) == {"prd": {f"{POLICIES}/guard", f"{TEAM}/guard"}, DEV: set()}
    instances = await world.until(lambda: world.objects(POLICY_GATE, TEAM, labels="kardinal.io/bundle"))
    await world.wait_for(
        POLICY_GATE,
        next(obj["metadata"]["name"] for obj in instances if obj["spec"]["origin"]["scope"] == "org"),
        lambda obj: obj.get("status", {}).get("ready") is False,
    )


@pytest.mark.parametrize(
    ("chosen", "fields"),
    [
        ("name of an environment", {"applies_to": PROD}),
        ("name of an environment", {"applies_to": None, "appliesTo": [PROD]}),
        ("name of an environment", {"applies_to": PROD, "match": {"paths": ["environments/prod"]}}),
        ("name of a Pipeline", {"applies_to": None, "match": {"pipelines": ["shop-*"]}}),
    ],
)
async def test_an_org_gate_that_selects_by_a_name_that_its_subjects_choose_says_so(
    world: World, plane: Controller, chosen: str, fields: dict[str, Any]
) -> None:
    await world.apply(pipeline(REPOSITORY), gate("guard", "false", namespace=POLICIES, **fields))
    found = await world.wait_for(
        POLICY_GATE, "guard", lambda obj: condition(obj, "Valid") is not None, namespace=POLICIES
    )
    valid = condition(found, "Valid")
    assert valid is not None
    assert valid["reason"] == "SelectsByName"
    assert chosen in valid["message"]
    await world.settle()
    assert any(chosen in event["note"] for event in await world.events("SelectsByName"))


async def test_an_org_gate_on_a_place_that_leaves_other_namespaces_out_says_so(world: World, plane: Controller) -> None:
    await world.apply(org_gate(namespaces=["victim"], paths=["environments/prod"], branches=["main"]))
    found = await world.wait_for(
        POLICY_GATE, "guard", lambda obj: condition(obj, "Valid") is not None, namespace=POLICIES
    )
    valid = condition(found, "Valid")
    assert valid is not None
    assert valid["reason"] == "SelectsByNamespace"
    assert "a Pipeline of another namespace that writes to the same place is not held" in valid["message"]
    await world.settle()
    assert any("branches and paths" in event["note"] for event in await world.events("SelectsByNamespace"))


@pytest.mark.parametrize(
    "match",
    [
        {"paths": ["environments/prod"], "branches": ["main"]},
        {"paths": ["environments/prod"], "namespaces": ["*"]},
        {"namespaces": ["victim"]},
    ],
    ids=["facts", "every namespace", "namespaces alone"],
)
async def test_an_org_gate_that_selects_by_facts_carries_no_warning(
    world: World, plane: Controller, match: dict[str, list[str]]
) -> None:
    await world.apply(gate("guard", "false", applies_to=None, namespace=POLICIES, match=match))
    found = await world.wait_for(
        POLICY_GATE, "guard", lambda obj: condition(obj, "Valid") is not None, namespace=POLICIES
    )
    valid = condition(found, "Valid")
    assert valid is not None
    assert valid["reason"] == "Valid"


async def test_a_pipeline_without_environments_does_not_keep_org_gates_from_being_checked(
    world: World, plane: Controller
) -> None:
    await world.apply(pipeline(REPOSITORY, environments=[]))
    # The Pipeline is validated first: its status must not be written between the reading and the writing here.
    await world.settle()
    empty = await world.get(PIPELINE, "my-app")
    await world.client.replace(PIPELINE, empty | {"spec": {"git": {"url": REPOSITORY, "provider": "local"}}})
    await world.apply(gate("guard", "false", applies_to=None, namespace=POLICIES))
    await world.wait_for(POLICY_GATE, "guard", lambda obj: condition(obj, "Valid") is not None, namespace=POLICIES)


async def test_permission_to_skip_is_for_a_path_and_not_for_a_name(world: World, plane: Controller) -> None:
    permission = org_gate("may-skip", "true", paths=["environments/staging"])
    permission["metadata"]["labels"] = {"kardinal.io/type": "skip-permission"}
    await world.apply(org_gate(paths=["environments"]), permission)
    way = [
        writing(DEV, "environments/dev"),
        writing(STAGING, "environments/prod"),
        writing("s", "environments/staging"),
    ]
    await world.apply(pipeline(REPOSITORY, environments=way))
    await world.apply(bundle("app-1", intent={"skip": [STAGING]}))
    await world.wait_for(BUNDLE, "app-1", phase("SkipDenied"))
    await world.apply(bundle("app-2", intent={"skip": ["s"]}))
    await world.wait_for(GRAPH, "app-2", lambda _: True)


async def test_one_directory_under_two_names_is_refused(world: World, plane: Controller) -> None:
    way = [writing("prod", None), writing("preview", "./environments//prod/")]
    message = await refused(world, pipeline(REPOSITORY, environments=way))
    assert "spec.environments[1].path" in message
    assert "spec.environments[0].path" in message


async def test_pipelines_of_two_namespaces_on_one_path_are_held_and_told_nothing(
    world: World, plane: Controller
) -> None:
    elsewhere = of_run("elsewhere")
    await world.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": elsewhere}})
    await world.apply(org_gate(paths=["environments/prod"]))
    way = [writing("prd", "environments/prod"), writing(DEV, "apps")]
    await world.apply(pipeline(REPOSITORY, environments=way))
    await world.apply(pipeline(REPOSITORY, environments=way, namespace=elsewhere))
    assert await bound(world) == only("prd", among=("prd", DEV))
    await world.settle()
    for namespace in (TEAM, elsewhere):
        assert condition(await world.get(PIPELINE, "my-app", namespace), "SharedPath") is None


async def test_instances_carry_no_match(world: World, plane: Controller) -> None:
    await world.apply(org_gate(paths=["dev"]))
    await world.apply(pipeline(REPOSITORY, environments=[writing(DEV, "dev")]))
    await bound(world)
    instance = await world.wait_for(POLICY_GATE, f"app-1-{DEV}-guard", lambda _: True)
    assert "match" not in instance["spec"]
