"""The roles for people allow what their table says, and nothing else; commands are tried as such users."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from kardinal.promotion.kinds import BUNDLE, POLICY_GATE
from tests.cli.in_process import InProcess
from tests.support.identities import RESOURCES, documents_of
from tests.support.names import DEV, POLICIES, STAGING, TEAM
from tests.support.objects import bundle, gate, pipeline
from tests.support.people import People, people_of
from tests.support.world import World

JsonObject = dict[str, Any]

READ = ("get", "list", "watch")
WRITE = ("create", "update", "patch", "delete")

KARDINAL = (
    "pipelines",
    "bundles",
    "promotionsteps",
    "policygates",
    "approvals",
    "metricchecks",
    "subscriptions",
    "catalogtenants",
    "catalogclusters",
)
KRO = ("graphs", "graphrevisions")
KINDS = [*(f"{plural}.kardinal.io" for plural in KARDINAL), *(f"{plural}.experimental.kro.run" for plural in KRO)]

READING = {kind: set(READ) for kind in KINDS}
WRITING: dict[str, dict[str, set[str]]] = {
    "kardinal-viewer": {},
    "kardinal-developer": {
        f"{plural}.kardinal.io": set(WRITE) for plural in ("pipelines", "bundles", "metricchecks", "subscriptions")
    },
    "kardinal-promoter": {
        "bundles.kardinal.io": set(WRITE),
        "policygates.kardinal.io": {"create", "patch", "delete"},
        "approvals.kardinal.io": {"create", "delete"},
    },
    "kardinal-policy-admin": {
        f"{plural}.kardinal.io": set(WRITE) for plural in ("policygates", "catalogtenants", "catalogclusters")
    },
    "kardinal-approver": {"policygates.kardinal.io": {"approve"}},
}
"""Role -> what it may do beside reading."""


@pytest.fixture
async def people(world: World) -> AsyncIterator[People]:
    for document in (*documents_of("roles.yaml"), *documents_of("supplychain/roles.yaml")):
        await world.client.apply(RESOURCES["ClusterRole"], document, field_manager="test", force=True)
    async with people_of(world) as found:
        yield found


def test_the_table_has_every_role() -> None:
    assert [document["metadata"]["name"] for document in documents_of("roles.yaml")] == list(WRITING)


@pytest.mark.parametrize("role", WRITING)
async def test_a_role_allows_what_its_table_says(people: People, role: str) -> None:
    await people.bind("dana", role)
    await people.until_allowed("dana", ("watch", "graphs.experimental.kro.run"))

    allowed = await people.rules("dana", TEAM)
    beyond = await people.rules("dana", POLICIES)

    assert {kind: verbs for kind, verbs in allowed.items() if kind not in beyond} == _table(role)
    assert not {kind for kind in beyond if "kardinal" in kind or "kro" in kind}, "nothing beyond its namespace"


@pytest.mark.parametrize(
    ("role", "same_as"), [("view", "kardinal-viewer"), ("edit", "kardinal-developer"), ("admin", "kardinal-developer")]
)
async def test_the_usual_roles_of_a_namespace_get_what_is_safe(people: People, role: str, same_as: str) -> None:
    await people.bind("dana", role)
    await people.until_allowed("dana", ("watch", "graphs.experimental.kro.run"))
    if WRITING[same_as]:
        await people.until_allowed("dana", ("delete", "subscriptions.kardinal.io"))

    allowed = await people.rules("dana", TEAM)

    ours = (".kardinal.io", ".experimental.kro.run")
    assert {kind: verbs for kind, verbs in allowed.items() if kind.partition("/")[0].endswith(ours)} == _table(same_as)


@pytest.mark.parametrize(("role", "verbs"), [("view", READ), ("edit", READ + WRITE), ("admin", READ + WRITE)])
async def test_the_usual_roles_of_a_namespace_cover_the_owners_of_supply_chains_and_no_blueprint(
    people: People, role: str, verbs: tuple[str, ...]
) -> None:
    await people.bind("dana", role)
    owners = [f"{plural}.carto.run" for plural in ("workloads", "deliverables", "runnables")]
    await people.until_allowed("dana", *((verb, owner) for owner in owners for verb in verbs))

    allowed = await people.rules("dana", TEAM)

    found = {kind: granted for kind, granted in allowed.items() if "carto.run" in kind}
    assert found == {owner: set(verbs) for owner in owners}


def _table(role: str) -> dict[str, set[str]]:
    return {kind: verbs | WRITING[role].get(kind, set()) for kind, verbs in READING.items()}


COMMANDS = {
    "get": ("get", "steps", "my-app"),
    "explain": ("explain", "my-app", "--env", DEV),
    "status": ("status", "my-app"),
    "create": ("create", "bundle", "my-app", "--image", "ghcr.io/acme/my-app:2.0.0"),
    "promote": ("promote", "my-app", "--env", STAGING, "--bundle", "release"),
    "pause": ("pause", "my-app"),
    "resume": ("resume", "my-app"),
}
READERS = {"get", "explain", "status"}
MAY = {
    "kardinal-viewer": READERS,
    "kardinal-developer": READERS | {"create", "promote"},
    "kardinal-promoter": READERS | {"create", "promote", "pause", "resume"},
    "kardinal-policy-admin": READERS | {"pause", "resume"},
}


@pytest.mark.parametrize("role", MAY)
async def test_commands_work_for_whom_they_are_meant(world: World, people: People, role: str) -> None:
    home = world.new_directory("home")
    home.mkdir()
    kardinal = InProcess(await people.kubeconfig_of_account("dana", home), home)
    account = f"system:serviceaccount:{TEAM}:dana"
    await people.bind(account, role)
    await people.until_allowed(account, ("watch", "graphs.experimental.kro.run"))
    await world.apply(
        pipeline("https://git.example.com/acme/gitops.git", provider="git"),
        bundle("release", intent={"target": DEV}),
    )

    done = {name: await kardinal.attempt(*command) for name, command in COMMANDS.items()}

    assert {name for name, finished in done.items() if finished.code == 0} == MAY[role], done
    for name in COMMANDS.keys() - MAY[role]:
        assert f'User "{account}" cannot' in done[name].err, done[name]
    found = await world.get(BUNDLE, "release")
    asked = [(each["action"], each["environment"]) for each in found["spec"]["intent"].get("requests", ())]
    assert asked == ([("promote", STAGING)] if "promote" in MAY[role] else [])


async def test_a_team_does_not_write_the_gates_of_the_organisation(world: World, people: People) -> None:
    await world.apply(gate("org", "false", namespace=POLICIES))
    dana = await people.bind("dana", "kardinal-policy-admin")
    await people.until_allowed("dana", ("patch", "policygates.kardinal.io"))

    in_policies = await dana.patch(POLICY_GATE, "org", {"spec": {"expression": "true"}}, namespace=POLICIES)
    in_team = await dana.create(POLICY_GATE, gate("team", "true"))

    assert (in_policies.status, in_team.status) == (403, 201), (in_policies, in_team)
    assert (await world.get(POLICY_GATE, "org", POLICIES))["spec"]["expression"] == "false"
