"""Workloads end to end: what is stamped, by whom, and what their status says."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kardinal.objects import CONFIG_MAP, SECRET, JsonObject
from kardinal_supplychain.api.kinds import CLUSTER_CONFIG_TEMPLATE, CLUSTER_SUPPLY_CHAIN, WORKLOAD
from tests.supplychain.chains import (
    Chains,
    Requests,
    blueprint,
    condition,
    conditions,
    config_map,
    resource,
    template,
    workload,
)
from tests.support.accounts import rule
from tests.support.names import TEAM

READY = [
    ("SupplyChainReady", "True", "Ready"),
    ("ResourcesSubmitted", "True", "ResourceSubmissionComplete"),
    ("ResourcesHealthy", "True", "HealthyConditionRule"),
    ("Ready", "True", "Ready"),
]
FIRST = template("first", config_map("$(workload.metadata.name)$-first", url="$(workload.spec.source.git.url)$"))
SECOND = template("second", config_map("$(workload.metadata.name)$-second", copied="$(config.url)$"))
STAMPED = resource("first"), resource("second", configs=[{"name": "c", "resource": "first"}])
DEV = {"name": "dev"}
CHAIN = blueprint(*STAMPED, serviceAccountRef=DEV)
WEB = workload(source={"git": {"url": "https://git.example.com/a"}})


def body(api_version: str, kind: str) -> JsonObject:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}


@pytest.fixture
async def stamping(chains: Chains) -> Chains:
    """Return a world in which two ConfigMaps are stamped for the Workload `web`, the second with data of the first."""
    await chains.account("dev", rule("*", on="configmaps"))
    await chains.apply(FIRST, SECOND, CHAIN, WEB)
    return chains


async def data(chains: Chains, name: str) -> JsonObject:
    found: JsonObject = (await chains.get(CONFIG_MAP, name))["data"]
    return found


async def test_objects_are_stamped_in_order_and_shown(stamping: Chains) -> None:
    first = await stamping.get(CONFIG_MAP, "web-first")
    assert await data(stamping, "web-second") == {"copied": "https://git.example.com/a"}
    owner = await stamping.get(WORKLOAD, "web")
    [reference] = first["metadata"]["ownerReferences"]
    assert (reference["uid"], reference["controller"]) == (owner["metadata"]["uid"], True)
    status = owner["status"]
    assert conditions(status) == READY
    assert status["supplyChainRef"] == {"kind": "ClusterSupplyChain", "name": "chain"}
    shown, following = status["resources"]
    assert shown["stampedRef"] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "namespace": TEAM,
        "name": "web-first",
        "resource": "configmaps",
        "uid": first["metadata"]["uid"],
    }
    assert shown["templateRef"]["name"] == "first"
    assert [each["preview"] for each in shown["outputs"]] == ["url: https://git.example.com/a\n"]
    assert following["inputs"] == [{"name": "first"}]
    assert conditions(following) == [
        ("ResourceSubmitted", "True", "ResourceSubmissionComplete"),
        ("Healthy", "True", "OutputsAvailable"),
        ("Ready", "True", "Ready"),
    ]


async def test_stamped_object_is_shown_with_its_uid(stamping: Chains) -> None:
    """Beyond: a reference of Cartographer has no uid, so that another object of the name looks the same."""
    first = await stamping.get(CONFIG_MAP, "web-first")
    assert (await stamping.resource("first"))["stampedRef"] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "namespace": TEAM,
        "name": "web-first",
        "resource": "configmaps",
        "uid": first["metadata"]["uid"],
    }
    await stamping.world.delete(CONFIG_MAP, "web-first")
    again = await stamping.get(CONFIG_MAP, "web-first")
    assert again["metadata"]["uid"] != first["metadata"]["uid"]
    assert (await stamping.resource("first"))["stampedRef"]["uid"] == again["metadata"]["uid"]


async def test_change_of_the_owner_flows_to_the_last_resource(stamping: Chains) -> None:
    await stamping.apply(workload(source={"git": {"url": "https://git.example.com/b"}}))
    assert await data(stamping, "web-second") == {"copied": "https://git.example.com/b"}


async def test_change_of_a_template_takes_its_fields_along(stamping: Chains) -> None:
    await stamping.apply(template("first", config_map("$(workload.metadata.name)$-first", url="u", more="m")))
    assert await data(stamping, "web-first") == {"url": "u", "more": "m"}
    await stamping.apply(template("first", config_map("$(workload.metadata.name)$-first", url="u")))
    assert await data(stamping, "web-first") == {"url": "u"}


async def test_fields_of_others_stay_and_drift_is_put_back(stamping: Chains) -> None:
    """Cartographer sets fields of others to null; the seeds write again only when an input changes."""
    theirs = {"data": {"url": "drifted", "theirs": "kept"}}
    await stamping.world.client.patch(CONFIG_MAP, "web-first", TEAM, theirs)
    await stamping.world.settle()
    assert await data(stamping, "web-first") == {"url": "https://git.example.com/a", "theirs": "kept"}


async def test_object_that_was_deleted_is_made_again(stamping: Chains) -> None:
    await stamping.world.delete(CONFIG_MAP, "web-first")
    assert await data(stamping, "web-first") == {"url": "https://git.example.com/a"}
    assert conditions(await stamping.status()) == READY


async def test_change_of_one_object_is_one_reconcile_and_its_own_writes(stamping: Chains) -> None:
    others = [workload(f"other-{number}", source={"git": {"url": "u"}}) for number in range(5)]
    await stamping.apply(*others)
    requests = Requests(stamping)
    await stamping.world.client.patch(CONFIG_MAP, "web-first", TEAM, {"data": {"more": "m"}})
    taken = await requests.take()
    # The output has changed: it is shown, and the consumer is marked with its new inputs.
    assert taken.made == ["patch configmaps", "patch workloads/status"]
    assert taken.reconciles == 1
    await stamping.world.client.patch(CONFIG_MAP, "web-first", TEAM, {"data": {"url": "drifted"}})
    taken = await requests.take()
    assert taken.made == ["patch configmaps"]
    assert taken.reconciles == 1


async def test_restart_changes_nothing(stamping: Chains) -> None:
    before = [(await stamping.get(kind, name))["metadata"] for kind, name in OBJECTS]
    requests = Requests(stamping)
    await stamping.restart()
    taken = await requests.take()
    assert taken.made == []
    after = [(await stamping.get(kind, name))["metadata"] for kind, name in OBJECTS]
    assert [each["resourceVersion"] for each in before] == [each["resourceVersion"] for each in after]


OBJECTS: tuple[tuple[Any, str], ...] = (
    (WORKLOAD, "web"),
    (CONFIG_MAP, "web-first"),
    (CONFIG_MAP, "web-second"),
    (CLUSTER_SUPPLY_CHAIN, "chain"),
)


async def test_idle_chains_write_nothing(stamping: Chains) -> None:
    requests = Requests(stamping)
    await stamping.world.idle(timedelta(minutes=10))
    taken = await requests.take()
    assert (taken.made, taken.reconciles) == ([], 0)


async def test_input_without_a_value_is_waited_for(chains: Chains) -> None:
    """Cartographer stamps without the value, and fails."""
    await chains.account("dev", rule("*", on="configmaps"))
    await chains.apply(template("first", config_map("web-first"), configPath="data.later"), SECOND, CHAIN, WEB)
    first, second = (await chains.status())["resources"]
    assert condition(first, "ResourceSubmitted")[1] == "MissingValueAtPath"
    status, reason, message = condition(second, "ResourceSubmitted")
    assert (status, reason) == ("Unknown", "WaitingForInput")
    assert "[config]" in message
    assert condition(await chains.status(), "ResourcesSubmitted")[1] == "MissingValueAtPath"
    await chains.world.client.patch(CONFIG_MAP, "web-first", TEAM, {"data": {"later": "v", "url": "u"}})
    await chains.apply(template("first", config_map("web-first")))
    assert await data(chains, "web-second") == {"copied": "u"}


@pytest.mark.parametrize("restarted", [False, True])
async def test_consumers_keep_the_last_value_of_an_output_that_vanishes(chains: Chains, *, restarted: bool) -> None:
    await chains.account("dev", rule("*", on="configmaps"))
    later = template("first", config_map("web-first"), configPath="data.later")
    reading = template("second", config_map("web-second", copied="$(config)$"))
    await chains.apply(later, reading, CHAIN, WEB)
    await chains.world.client.patch(CONFIG_MAP, "web-first", TEAM, {"data": {"later": "v"}})
    assert await data(chains, "web-second") == {"copied": "v"}
    await chains.world.client.patch(CONFIG_MAP, "web-first", TEAM, {"data": {"later": None}})
    await chains.world.settle()
    if restarted:
        await chains.restart()
    await chains.apply(template("second", config_map("web-second", copied="still $(config)$")))
    assert await data(chains, "web-second") == {"copied": "still v"}
    first = await chains.resource("first")
    assert condition(first, "ResourceSubmitted")[1] == "MissingValueAtPath"
    assert [each["preview"] for each in first["outputs"]] == ["v\n"]


async def test_value_whose_preview_is_cut_is_waited_for_and_objects_stay(chains: Chains) -> None:
    await chains.account("dev", rule("*", on="configmaps"))
    later = template("first", config_map("web-first"), configPath="data.later")
    await chains.apply(later, template("second", config_map("web-second", copied="$(config)$")), CHAIN, WEB)
    await chains.world.client.patch(CONFIG_MAP, "web-first", TEAM, {"data": {"later": "v" * 2000}})
    before = await data(chains, "web-second")
    await chains.world.client.patch(CONFIG_MAP, "web-first", TEAM, {"data": {"later": None}})
    second = await chains.resource("second")
    assert condition(second, "ResourceSubmitted")[1] == "WaitingForInput"
    assert second["stampedRef"]["name"] == "web-second"
    assert await data(chains, "web-second") == before


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ([{**WEB, "metadata": {**WEB["metadata"], "labels": {}}}], "WorkloadLabelsMissing"),
        ([{**WEB, "metadata": {**WEB["metadata"], "labels": {"type": "other"}}}], "SupplyChainNotFound"),
        ([blueprint(resource("first"), name="twin")], "MultipleSupplyChainMatches"),
        ([blueprint(resource("first"), resource("gone"))], "TemplatesNotFound"),
        ([blueprint(resource("first", configs=[{"name": "x", "resource": "no"}]))], "InvalidBlueprint"),
    ],
)
async def test_without_one_ready_blueprint_nothing_is_touched(
    stamping: Chains, change: list[JsonObject], reason: str
) -> None:
    resources = (await stamping.status())["resources"]
    requests = Requests(stamping)
    await stamping.apply(*change)
    taken = await requests.take()
    assert [each for each in taken.made if "configmaps" in each] == []
    status = await stamping.status()
    assert [each["type"] for each in status["conditions"]] == ["SupplyChainReady", "Ready"]
    assert condition(status, "SupplyChainReady")[:2] == ("False", reason)
    assert status["resources"] == resources
    assert status["supplyChainRef"]["name"] == "chain"


async def test_objects_and_their_entries_outlive_the_blueprint(stamping: Chains) -> None:
    resources = (await stamping.status())["resources"]
    await stamping.world.client.delete(CLUSTER_SUPPLY_CHAIN, "chain")
    status = await stamping.status()
    assert (status["resources"], status["supplyChainRef"]["name"]) == (resources, "chain")
    assert condition(status, "Ready")[1] == "SupplyChainNotFound"
    assert await data(stamping, "web-second") == {"copied": "https://git.example.com/a"}
    await stamping.apply(CHAIN)
    assert conditions(await stamping.status()) == READY


async def test_blueprint_with_more_requirements_wins(stamping: Chains) -> None:
    has_source = [{"key": "spec.source.git", "operator": "Exists"}]
    better = blueprint(resource("first"), name="better", selectorMatchFields=has_source, serviceAccountRef=DEV)
    await stamping.apply(better)
    assert (await stamping.status())["supplyChainRef"]["name"] == "better"
    first = await stamping.get(CONFIG_MAP, "web-first")
    assert first["metadata"]["labels"]["carto.run/supply-chain-name"] == "better"
    await stamping.world.client.delete(CLUSTER_SUPPLY_CHAIN, "better")
    assert (await stamping.status())["supplyChainRef"]["name"] == "chain"


async def test_template_that_is_gone_and_back(stamping: Chains) -> None:
    await stamping.world.client.delete(CLUSTER_CONFIG_TEMPLATE, "second")
    assert condition(await stamping.status(), "Ready")[1] == "TemplatesNotFound"
    await stamping.apply(SECOND)
    assert conditions(await stamping.status()) == READY


async def test_option_is_chosen_by_the_owner(stamping: Chains) -> None:
    options = [{"name": name, "selector": {"matchLabels": {"pick": name}}} for name in ("first", "second")]
    await stamping.apply(blueprint(resource("first", templateRef={"options": options}), serviceAccountRef=DEV))
    first = await stamping.resource("first")
    assert condition(first, "ResourceSubmitted")[:2] == ("False", "TemplateOptionsMatchError")
    assert first["stampedRef"]["name"] == "web-first"
    await stamping.apply(workload(labels={"type": "web", "pick": "first"}, source={"git": {"url": "u"}}))
    assert (await stamping.resource("first"))["templateRef"]["name"] == "first"


async def test_option_passes_an_input_through(stamping: Chains) -> None:
    options = [
        {"passThrough": "c", "selector": {"matchLabels": {"type": "web"}}},
        {"name": "second", "selector": {"matchLabels": {"type": "none"}}},
    ]
    from_first = [{"name": "c", "resource": "first"}]
    between = resource("between", templateRef={"options": options}, configs=from_first)
    last = resource("second", configs=[{"name": "c", "resource": "between"}])
    await stamping.apply(blueprint(resource("first"), between, last, serviceAccountRef=DEV))
    passed = await stamping.resource("between")
    assert conditions(passed) == [("ResourceSubmitted", "True", "PassThrough"), ("Ready", "True", "Ready")]
    assert passed["outputs"][0]["preview"] == "url: https://git.example.com/a\n"
    assert "stampedRef" not in passed
    assert conditions(await stamping.status()) == READY


@pytest.mark.parametrize(
    ("written", "reason", "said"),
    [
        (config_map("x", a="$(params.none)$"), "TemplateStampFailure", "at path [data.a]"),
        ({"metadata": {"name": "x"}}, "TemplateStampFailure", "no apiVersion"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}, "TemplateStampFailure", "lifecycle: immutable"),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "other"}},
            "TemplateStampFailure",
            "cannot set namespace",
        ),
        (
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}},
            "TemplateStampFailure",
            "cluster-scoped",
        ),
        (
            {"apiVersion": "no.example/v1", "kind": "No", "metadata": {"name": "x"}},
            "TemplateRejectedByAPIServer",
            '"No"',
        ),
        ({**config_map("x"), "data": {"a": 1}}, "TemplateRejectedByAPIServer", "data"),
    ],
)
async def test_resource_that_fails_stops_no_other(
    stamping: Chains, written: JsonObject, reason: str, said: str
) -> None:
    await stamping.apply(template("bad", written), blueprint(resource("bad"), *STAMPED, serviceAccountRef=DEV))
    bad, *others = (await stamping.status())["resources"]
    assert condition(bad, "ResourceSubmitted")[:2] == ("False", reason)
    assert said in condition(bad, "ResourceSubmitted")[2]
    assert [condition(each, "Ready")[0] for each in others] == ["True", "True"]
    assert condition(await stamping.status(), "ResourcesSubmitted")[1] == reason


async def test_two_resources_that_stamp_one_object_are_refused(stamping: Chains) -> None:
    await stamping.apply(blueprint(*STAMPED, resource("again", "first"), serviceAccountRef=DEV))
    again = await stamping.resource("again")
    assert condition(again, "ResourceSubmitted")[1] == "DuplicateObject"
    assert condition(await stamping.resource("first"), "Ready")[0] == "True"


async def test_two_owners_do_not_share_an_object(chains: Chains) -> None:
    """Trap: two Workloads whose templates stamp one name took it from each other for ever."""
    await chains.account("dev", rule("*", on="configmaps"))
    chain = blueprint(resource("only"), serviceAccountRef=DEV)
    await chains.apply(template("only", config_map("shared", of="$(workload.metadata.name)$")), chain, workload("a"))
    await chains.apply(workload("b"))
    found = condition(await chains.resource("only", "b"), "ResourceSubmitted")
    assert found[1] == "TemplateRejectedByAPIServer"
    assert found[2].endswith("Workload a")
    assert (await data(chains, "shared")) == {"of": "a"}
    await chains.world.delete(WORKLOAD, "a")
    await chains.world.wait_for(CONFIG_MAP, "shared", lambda obj: obj["data"]["of"] == "b")


async def test_values_of_secrets_are_in_no_status(chains: Chains) -> None:
    await chains.account("dev", rule("*", on="configmaps"), rule("*", on="secrets"))
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"url": "c3VwZXI="}}
    await chains.apply(template("first", body), SECOND, CHAIN, WEB)
    assert await data(chains, "web-second") == {"copied": "YzNWd1pYST0="}
    status = await chains.status()
    assert conditions(status) == READY
    assert all("outputs" not in each for each in status["resources"])
    assert "YzNWd1pYST0" not in str(status)
    assert (await chains.get(SECRET, "s"))["data"] == {"url": "YzNWd1pYST0="}


async def test_events_say_what_happened(stamping: Chains) -> None:
    await stamping.world.settle()
    notes = {event["reason"]: event["note"] for event in await stamping.world.events()}
    assert notes.keys() == {"StampedObjectApplied", "ResourceOutputChanged", "ResourceHealthyStatusChanged"}
    assert "[configmaps/web-" in notes["StampedObjectApplied"]
