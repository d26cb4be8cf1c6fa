"""A tenant who may write Graphs in one namespace, and tries to read and write with rights that are not theirs.

The controller has the rights of deploy/ and no others.
"""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from kardinal.objects import DEPLOYMENT, GRAPH, GRAPH_REVISION, JsonObject
from kardinal.promotion.kinds import POLICY_GATE
from tests.support.accounts import allow, lend, make_account, rule
from tests.support.identities import RESOURCES
from tests.support.names import POLICIES, TEAM
from tests.support.objects import gate
from tests.support.people import people_of
from tests.support.permissions import Permission
from tests.support.programs import start_controller
from tests.support.world import World

VICTIM = POLICIES
"""A namespace that is not the tenant's."""
PASSWORD = "correct-horse-battery"
WRITES = ("get", "create", "patch", "delete")
A_MINUTE = timedelta(seconds=61)
"""The time after which every answer about rights is asked for again."""


def graph(*nodes: JsonObject, name: str = "g", account: str | None = "deployer") -> JsonObject:
    spec: JsonObject = {"nodes": list(nodes)}
    if account is not None:
        spec["serviceAccountName"] = account
    metadata = {"name": name, "namespace": TEAM}
    return {"apiVersion": GRAPH.api_version, "kind": "Graph", "metadata": metadata, "spec": spec}


def deployment(name: str = "web", *, namespace: str | None = None, **spec: Any) -> JsonObject:
    """Return a Deployment of no pods."""
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "example.com/app:1"}]}}
    wanted = {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": wanted}


def template(body: JsonObject, node: str = "web") -> JsonObject:
    return {"id": node, "template": body}


def reads(kind: str, name: str, *, namespace: str | None = None, version: str = "v1", node: str = "read") -> JsonObject:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"id": node, "ref": {"apiVersion": version, "kind": kind, "metadata": metadata}}


def secret(namespace: str = TEAM) -> JsonObject:
    data = {"password": base64.b64encode(PASSWORD.encode()).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": namespace}, "data": data}


async def nodes(world: World, name: str = "g") -> dict[str, tuple[str, str]]:
    """Return the state and the reason of every node, once nothing more happens."""
    await world.settle()
    status = (await world.get(GRAPH, name)).get("status") or {}
    return {node["id"]: (node["state"], node.get("reason", "")) for node in status.get("nodes", ())}


async def message(world: World, node: str, name: str = "g") -> str:
    [found] = [each for each in (await world.get(GRAPH, name))["status"]["nodes"] if each["id"] == node]
    return str(found.get("message"))


@pytest.fixture
async def deployer(world: World) -> None:
    """Make an account that may write Deployments of its namespace."""
    await make_account(world, "deployer", rule(*WRITES, on="deployments", group="apps"))


@pytest.mark.usefixtures("deployer")
async def test_objects_are_written_by_the_account_and_go_with_the_graph(world: World) -> None:
    await start_controller(world)
    writers: set[tuple[str, str]] = set()

    def note(request: Any) -> None:
        if request.resource == "deployments.apps" and request.verb in ("patch", "delete") and not request.subresource:
            writers.add((request.verb, request.user))

    subscription = world.audit.subscribe(note)
    await world.apply(graph(template(deployment())))
    assert await nodes(world) == {"web": ("Ready", "")}
    await world.delete(GRAPH, "g")
    await world.settle()
    subscription.close()
    assert await world.find(GRAPH, "g") is None
    assert await world.find(DEPLOYMENT, "web") is None
    account = f"system:serviceaccount:{TEAM}:deployer"
    assert {("patch", account), ("delete", account)} <= writers
    assert world.user("controller") not in {user for _, user in writers}


@pytest.mark.virtual_time("rights are asked for again after a minute")
@pytest.mark.usefixtures("deployer")
async def test_graph_whose_account_is_no_longer_lent_can_be_deleted(world: World) -> None:
    await start_controller(world)
    await world.apply(graph(template(deployment())))
    assert await nodes(world) == {"web": ("Ready", "")}
    await world.client.delete(RESOURCES["RoleBinding"], "lend-deployer", TEAM)
    await world.live(A_MINUTE)
    await world.delete(GRAPH, "g")

    async def is_gone() -> bool:
        return await world.find(GRAPH, "g") is None and await world.find(DEPLOYMENT, "web") is None

    await world.until(is_gone)


async def test_graph_without_an_account_is_refused_with_the_remedy(world: World) -> None:
    await start_controller(world)
    await world.apply(graph(template(deployment()), account=None))
    await world.settle()
    conditions = (await world.get(GRAPH, "g"))["status"]["conditions"]
    [accepted] = [each for each in conditions if each["type"] == "Accepted"]
    assert (accepted["status"], accepted["reason"]) == ("False", "NotAdmitted")
    assert "spec.serviceAccountName: name a ServiceAccount of this namespace" in accepted["message"]
    assert await world.find(DEPLOYMENT, "web") is None


@pytest.mark.virtual_time("rights are asked for again after a minute")
async def test_account_that_is_not_lent_to_the_controller_reads_and_writes_nothing(world: World) -> None:
    await allow(world, "powerful", rule("*", on="deployments", group="apps"), rule("*", on="secrets"))
    await world.apply(secret(), deployment("theirs", namespace=TEAM))
    await start_controller(world)
    await world.apply(
        graph(
            template(deployment()),
            reads("Deployment", "theirs", version="apps/v1"),
            reads("Secret", "keys", node="stolen"),
            account="powerful",
        )
    )
    refused = ("Error", "AccountNotLent")
    assert await nodes(world) == {"web": refused, "read": refused, "stolen": refused}
    assert "give it the verb impersonate on serviceaccounts of that name by a Role" in await message(world, "web")
    assert await world.find(DEPLOYMENT, "web") is None
    await lend(world, "powerful")
    await world.live(A_MINUTE)
    assert set((await nodes(world)).values()) == {("Ready", "")}


@pytest.mark.parametrize(
    "name", [f"{VICTIM}:powerful", f"{VICTIM}/powerful", f"system:serviceaccount:{VICTIM}:powerful", ""]
)
async def test_account_of_another_namespace_cannot_be_named(world: World, name: str) -> None:
    await make_account(world, "powerful", rule("*", on="deployments", group="apps"), namespace=VICTIM)
    await start_controller(world)
    await world.apply(graph(template(deployment()), account=name))
    await world.settle()
    [accepted, *_] = (await world.get(GRAPH, "g"))["status"]["conditions"]
    assert (accepted["status"], accepted["reason"]) == ("False", "NotAdmitted")


async def test_account_has_no_rights_of_one_of_its_name_elsewhere(world: World) -> None:
    await make_account(world, "powerful", rule("*", on="deployments", group="apps"), namespace=VICTIM)
    await make_account(world, "powerful")
    await world.apply(deployment("theirs", namespace=VICTIM))
    await start_controller(world)
    there = reads("Deployment", "theirs", namespace=VICTIM, version="apps/v1")
    await world.apply(graph(template(deployment()), there, account="powerful"))
    assert await nodes(world) == {"web": ("Error", "AccessDenied"), "read": ("Error", "AccessDenied")}
    assert await world.find(DEPLOYMENT, "web") is None


@pytest.mark.virtual_time("rights are asked for again after a minute")
@pytest.mark.usefixtures("deployer")
async def test_account_may_not_read_all_that_the_controller_reads(world: World) -> None:
    await world.apply(deployment("theirs", namespace=VICTIM))
    await start_controller(world)
    there = reads("Deployment", "theirs", namespace=VICTIM, version="apps/v1")
    everywhere = {"id": "all", "watch": {"apiVersion": "apps/v1", "kind": "Deployment", "selector": {}}}
    copy = template(deployment(revisionHistoryLimit="${read.spec.replicas + size(all)}"))
    await world.apply(graph(there, everywhere, copy))
    denied = ("Error", "AccessDenied")
    assert await nodes(world) == {"read": denied, "all": denied, "web": ("Blocked", "DependencyFailed")}
    assert f"deployer may not get deployments.apps in namespace {VICTIM}" in await message(world, "read")
    assert "deployer may not list deployments.apps in all namespaces" in await message(world, "all")
    await allow(world, "deployer", rule("get", on="deployments", group="apps"), namespace=VICTIM, home=TEAM)
    await world.live(A_MINUTE)
    assert await nodes(world) == {"read": ("Ready", ""), "all": denied, "web": ("Blocked", "DependencyFailed")}


async def test_right_on_one_object_is_no_right_on_another(world: World) -> None:
    await make_account(world, "deployer", rule("get", on="deployments", group="apps", names=("ours",)))
    await world.apply(deployment("ours", namespace=TEAM), deployment("theirs", namespace=TEAM))
    await start_controller(world)
    ours = reads("Deployment", "ours", version="apps/v1", node="ours")
    theirs = reads("Deployment", "theirs", version="apps/v1", node="theirs")
    await world.apply(graph(ours, theirs))
    assert await nodes(world) == {"ours": ("Ready", ""), "theirs": ("Error", "AccessDenied")}


@pytest.mark.usefixtures("deployer")
async def test_rights_of_one_account_are_not_those_of_another(world: World) -> None:
    await make_account(world, "intern")
    await world.apply(deployment("ours", namespace=TEAM))
    await start_controller(world)
    ours = reads("Deployment", "ours", version="apps/v1")
    await world.apply(graph(ours, name="a"))
    assert await nodes(world, "a") == {"read": ("Ready", "")}
    await world.apply(graph(ours, name="b", account="intern"))
    assert await nodes(world, "b") == {"read": ("Error", "AccessDenied")}
    assert await nodes(world, "a") == {"read": ("Ready", "")}


@pytest.mark.virtual_time("rights are asked for again after a minute")
@pytest.mark.usefixtures("deployer")
async def test_secret_is_read_by_the_account_alone(world: World) -> None:
    await world.apply(secret())
    await start_controller(world)
    readers: set[str] = set()

    def note(request: Any) -> None:
        if request.resource == "secrets" and request.verb in ("get", "list", "watch") and request.name == "keys":
            readers.add(request.user)

    subscription = world.audit.subscribe(note)
    await world.apply(graph(reads("Secret", "keys")))
    assert await nodes(world) == {"read": ("Error", "AccessDenied")}
    await allow(world, "deployer", rule("get", on="secrets", names=("keys",)))
    await world.live(A_MINUTE)
    assert await nodes(world) == {"read": ("Ready", "")}
    subscription.close()
    assert readers == {f"system:serviceaccount:{TEAM}:deployer"}


@pytest.mark.case("A84")
@pytest.mark.shows_secrets("the API server quotes the value in its refusal, which must not be repeated")
async def test_value_of_a_secret_is_in_no_status_event_or_log(world: World) -> None:
    await make_account(
        world, "deployer", rule(*WRITES, on="deployments", group="apps"), rule("get", on="secrets", names=("keys",))
    )
    await world.apply(secret())
    await start_controller(world)
    password = "read.data.password"
    named = reads("Deployment", f"x-${{{password}.lowerAscii().replace('=', '')}}", version="apps/v1", node="named")
    refused = template(deployment("refused", replicas=f"${{{password}}}"), node="refused")
    text = template(deployment("text", strategy={"type": f"${{{password}}}"}), node="text")
    after = template(deployment("after", revisionHistoryLimit="${named.spec.replicas}"), node="after")
    with capture_logs() as logs:
        await world.apply(graph(reads("Secret", "keys"), named, refused, text, after))
        found = await nodes(world)
    assert (found["named"], found["after"]) == (("Pending", "TargetMissing"), ("Pending", "WaitingForNode"))
    assert {found["refused"][0], found["text"][0]} <= {"Error", "SystemError"}
    assert await message(world, "refused") == "not told, because the node has data of a Secret"
    value = base64.b64encode(PASSWORD.encode()).decode()
    told = [str((await world.get(GRAPH, "g"))["status"]), str(await world.events()), str(logs)]
    hidden = [form for form in (value, value.replace("=", ""), value.lower(), PASSWORD) if form in "".join(told)]
    assert hidden == []
    assert value.lower().replace("=", "") not in "".join(told)


async def test_graph_of_a_person_makes_no_kind_of_kardinal_whatever_its_account_may(world: World) -> None:
    rules = [rule("*", on="*", group="kardinal.io"), rule("*", on="*", group="experimental.kro.run")]
    await make_account(world, "deployer", *rules)
    await start_controller(world)
    open_gate = gate("soak", "true")
    open_gate["metadata"] = {"name": "soak"}
    computed = "{'apiVersion': 'kardinal.io/v1alpha1', 'kind': 'PolicyGate', 'metadata': {'name': 'x'}, 'spec': {}}"
    whole = {"id": "whole", "template": f"${{{computed}}}"}
    revision = {
        "apiVersion": GRAPH.api_version,
        "kind": "GraphRevision",
        "metadata": {"name": "g-g00002"},
        "spec": {"nodes": [], "generation": 2, "hash": "0", "dialectVersion": "v1alpha1"},
    }
    await world.apply(graph(template(open_gate, "gate"), whole, template(revision, "revision")))
    reserved = ("Error", "ReservedKind")
    assert await nodes(world) == {"gate": reserved, "whole": reserved, "revision": reserved}
    assert await world.objects(POLICY_GATE, TEAM) == []
    assert [each["metadata"]["name"] for each in await world.objects(GRAPH_REVISION, TEAM)] == ["g-g00001"]


async def test_kind_that_the_controller_may_not_watch_is_named_with_the_remedy(world: World) -> None:
    await make_account(world, "deployer", rule("get", on="configmaps"))
    await start_controller(world)
    await world.apply(graph(reads("ConfigMap", "settings")))
    assert await nodes(world) == {"read": ("Error", "WatchForbidden")}
    assert 'a ClusterRole with the label kardinal.io/aggregate-to-graph: "true"' in await message(world, "read")


@pytest.mark.virtual_time("kinds are asked for again after a minute")
@pytest.mark.usefixtures("deployer")
async def test_kinds_are_asked_for_where_their_definitions_may_not_be_watched(world: World) -> None:
    await world.client.delete(RESOURCES["ClusterRole"], "kardinal-graph-kinds")
    definitions = "customresourcedefinitions.apiextensions.k8s.io"
    async with people_of(world) as people:

        async def is_refused() -> bool:
            return not await people.allowed(world.user("controller"), "watch", definitions, namespace="")

        await world.until(is_refused)
    controller = await start_controller(world)
    absent = reads("Widget", "w", version="example.com/v1")
    await world.apply(graph(template(deployment()), absent))
    assert await nodes(world) == {"web": ("Ready", ""), "read": ("Pending", "KindNotInstalled")}
    watched = {informer.resource.kind for informer in controller.manager.dynamic.informers}
    assert "CustomResourceDefinition" not in watched
    asked: list[str] = []

    def note(request: Any) -> None:
        asked.append(request.resource)

    subscription = world.audit.subscribe(note)
    await world.live(A_MINUTE)
    subscription.close()
    assert any(path.startswith("/apis") for path in asked)


@pytest.mark.usefixtures("deployer")
async def test_watch_shows_the_objects_of_the_namespaces_that_the_account_may_list(world: World) -> None:
    await allow(world, "deployer", rule("list", *WRITES, on="deployments", group="apps"))
    await world.apply(deployment("ours", namespace=TEAM), deployment("theirs", namespace=VICTIM))
    await start_controller(world)
    there, here = [
        {"id": node, "watch": {"apiVersion": "apps/v1", "kind": "Deployment", "selector": {}, "metadata": place}}
        for node, place in (("there", {"namespace": VICTIM}), ("here", {"namespace": TEAM}))
    ]
    copy = template(deployment(revisionHistoryLimit="${size(here)}"))
    await world.apply(graph(there, here | {"readyWhen": ["${here.exists(d, d.metadata.name == 'ours')}"]}, copy))
    found = await nodes(world)
    assert (found["there"], found["here"]) == (("Error", "AccessDenied"), ("Ready", ""))
    assert f"deployer may not list deployments.apps in namespace {VICTIM}" in await message(world, "there")
    assert found["web"][0] == "Ready"


@pytest.mark.virtual_time("rights are asked for again after a minute")
@pytest.mark.usefixtures("deployer")
async def test_secrets_are_selected_by_the_account_alone(world: World) -> None:
    await world.apply(secret(), secret(VICTIM))
    await start_controller(world)
    readers: set[str] = set()

    def note(request: Any) -> None:
        if request.resource == "secrets" and request.verb in ("list", "watch") and request.namespace == TEAM:
            readers.add(request.user)

    subscription = world.audit.subscribe(note)
    body = {"apiVersion": "v1", "kind": "Secret", "selector": {}, "metadata": {"namespace": TEAM}}
    everywhere = {"apiVersion": "v1", "kind": "Secret", "selector": {}}
    named = "${ours.exists(s, s.metadata.name == 'keys')}"
    ours = {"id": "ours", "watch": body, "readyWhen": [named]}
    await world.apply(graph(ours, {"id": "all", "watch": everywhere}))
    denied = ("Error", "AccessDenied")
    assert await nodes(world) == {"ours": denied, "all": denied}
    await allow(world, "deployer", rule("list", on="secrets"))
    await world.live(A_MINUTE)
    assert await nodes(world) == {"ours": ("Ready", ""), "all": denied}
    subscription.close()
    assert world.user("controller") not in readers


@pytest.mark.parametrize("missing", ["create", "patch", "get"])
async def test_template_needs_the_rights_to_read_and_to_write_its_object(world: World, missing: str) -> None:
    rights = [verb for verb in WRITES if verb != missing]
    await make_account(world, "deployer", rule(*rights, on="deployments", group="apps"))
    await start_controller(world)
    await world.apply(graph(template(deployment()), {"id": "beside", "def": {"x": "1"}}))
    found = await nodes(world)
    assert (found["web"][0], found["beside"]) == ("Error", ("Ready", ""))
    assert found["web"][1] in ("AccessDenied", "Forbidden")
    assert f"{missing} " in await message(world, "web") or f'cannot {missing} resource "deployments"' in await message(
        world, "web"
    )
    assert await world.find(DEPLOYMENT, "web") is None


@pytest.mark.virtual_time("rights are asked for again after a minute")
@pytest.mark.usefixtures("deployer")
async def test_right_that_is_taken_away_leaves_objects_as_they_are(world: World) -> None:
    await start_controller(world)
    await world.apply(
        graph(template(deployment()), template(deployment("after", replicas="${web.spec.replicas}"), "after"))
    )
    assert set((await nodes(world)).values()) == {("Ready", "")}
    made = [await world.get(DEPLOYMENT, name) for name in ("web", "after")]
    await allow(world, "deployer", rule("list", on="deployments", group="apps"))
    async with people_of(world) as people:

        async def is_refused() -> bool:
            user = f"system:serviceaccount:{TEAM}:deployer"
            return not await people.allowed(user, "get", "deployments.apps", namespace=TEAM)

        await world.until(is_refused)
    await world.live(A_MINUTE)
    await world.apply(graph(template(deployment(replicas=1)), template(deployment("after"), "after")))
    assert (await nodes(world))["web"] == ("Error", "AccessDenied")
    kept = [await world.get(DEPLOYMENT, name) for name in ("web", "after")]
    assert [each["metadata"]["uid"] for each in kept] == [each["metadata"]["uid"] for each in made]
    assert kept[0]["spec"]["replicas"] == 0


async def test_object_of_another_namespace_is_made_only_if_the_account_may_make_it_there(world: World) -> None:
    writes = rule(*WRITES, on="deployments", group="apps")
    await make_account(world, "deployer", writes)
    await start_controller(world)
    await world.apply(graph(template(deployment(namespace=VICTIM))))
    assert await nodes(world) == {"web": ("Error", "AccessDenied")}
    assert await world.find(DEPLOYMENT, "web", VICTIM) is None


def watching(resource: str) -> set[Permission]:
    return {Permission(resource, verb) for verb in ("list", "watch")}


async def let_controller_watch(world: World, plural: str, *, group: str = "") -> None:
    """Add a kind to those that the controller watches for Graphs, as an operator does."""
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"watch-{plural}", "labels": {"kardinal.io/aggregate-to-graph": "true"}},
        "rules": [rule("list", "watch", on=plural, group=group)],
    }
    await world.client.apply(RESOURCES["ClusterRole"], role, field_manager="test", force=True)
    async with people_of(world) as people:
        await people.until_allowed(
            world.user("controller"), ("watch", f"{plural}.{group}".rstrip("."), ""), namespace=""
        )


@pytest.mark.virtual_time("rights are asked for again after a minute")
async def test_kind_is_watched_once_an_operator_adds_it(world: World) -> None:
    await make_account(world, "deployer", rule("get", on="configmaps"))
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": TEAM}}
    await world.apply(settings)
    await start_controller(world, beyond=watching("configmaps"))
    await world.apply(graph(reads("ConfigMap", "settings")))
    assert await nodes(world) == {"read": ("Error", "WatchForbidden")}
    await let_controller_watch(world, "configmaps")
    await world.live(A_MINUTE)
    assert await nodes(world) == {"read": ("Ready", "")}


async def test_account_gives_itself_no_right_by_a_graph(world: World) -> None:
    group = "rbac.authorization.k8s.io"
    await make_account(world, "deployer", rule(*WRITES, on="rolebindings", group=group))
    await let_controller_watch(world, "rolebindings", group=group)
    await start_controller(world, beyond=watching(f"rolebindings.{group}"))
    subject = {"kind": "ServiceAccount", "name": "deployer", "namespace": TEAM}
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "mine"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [subject],
    }
    await world.apply(graph(template(binding)))
    assert await nodes(world) == {"web": ("Error", "Forbidden")}
    assert await world.find(RESOURCES["RoleBinding"], "mine") is None


@pytest.mark.shows_secrets("the name of an object is made of the value, which must not be repeated")
async def test_name_that_is_made_of_a_secret_is_not_told_when_the_object_is_deleted(world: World) -> None:
    rules = [rule("get", "create", "patch", on="deployments", group="apps"), rule("get", on="secrets", names=("keys",))]
    await make_account(world, "deployer", *rules)
    await world.apply(secret())
    await start_controller(world)
    value = base64.b64encode(PASSWORD.encode()).decode().lower().replace("=", "")
    named = deployment(f"x-${{{'read.data.password'}.lowerAscii().replace('=', '')}}")
    named["spec"]["selector"]["matchLabels"] = named["spec"]["template"]["metadata"]["labels"] = {"app": "x"}
    with capture_logs() as logs:
        await world.apply(graph(reads("Secret", "keys"), template(named)))
        assert (await nodes(world))["web"] == ("Ready", "")
        await world.delete(GRAPH, "g")
        await world.settle()
    assert await world.find(DEPLOYMENT, f"x-{value}") is not None
    [ready] = [each for each in (await world.get(GRAPH, "g"))["status"]["conditions"] if each["type"] == "Ready"]
    assert ready["message"] == "waiting for a Deployment to be deleted"
    told = [str(ready), str(await world.events()), str(logs)]
    assert not [text for text in told if value in text]
    refusals = [str(line["error"]) for line in logs if "error" in line]
    assert "a Deployment could not be deleted: Forbidden" in refusals
