"""The plan of an owner as a function: chains of any shape, in any order of events, end in one state."""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kardinal.objects import CONFIG_MAP, SECRET, JsonObject, ResourceType
from kardinal.objects.applied import covers
from kardinal_supplychain.api.blueprints import ClusterSupplyChain
from kardinal_supplychain.api.owners import Workload
from kardinal_supplychain.api.templates import ConfigTemplateSpec, TemplateSpec
from kardinal_supplychain.realize.conditions import words_of
from kardinal_supplychain.realize.owner_status import owner_findings, resource_statuses, with_findings
from kardinal_supplychain.realize.plan import (
    Action,
    ApplyObject,
    Kind,
    LookUpKind,
    OwnerPlan,
    Realization,
    RenderYtt,
    StampRefusal,
)
from kardinal_supplychain.realize.runs import is_run_of, is_same_run
from kardinal_supplychain.realize.stamp import StampError
from tests.supplychain.chains import blueprint, condition, config_map, resource, workload

NOW = datetime(2026, 3, 3, 10, 0, tzinfo=UTC)


class MemoryCluster:
    """Implements `StampObservation` with objects in memory; `refuse` are names that it does not accept."""

    def __init__(self) -> None:
        self.objects: dict[str, JsonObject] = {}
        self.refuse: set[str] = set()
        self.applied: list[str] = []
        self._kinds: set[Kind] = set()
        self.ytt: StampError | None = None
        self._refused: set[str] = set()
        self._uids = 0

    def begin(self) -> None:
        """Begin another reconcile, which knows nothing but the objects."""
        self._kinds.clear()
        self._refused.clear()
        self.applied.clear()

    def kind(self, kind: Kind) -> ResourceType | StampRefusal | None:
        if kind not in self._kinds:
            return None
        return SECRET if kind.kind == SECRET.kind else CONFIG_MAP

    def rendered(self, render: RenderYtt) -> JsonObject | StampError | None:
        return self.ytt

    def live(self, type_: ResourceType, name: str) -> JsonObject | None:
        return self.objects.get(name)

    def runs(self, type_: ResourceType, resource: str) -> list[JsonObject]:
        return [obj for obj in self.objects.values() if is_run_of(obj, resource)]

    def removed(self, type_: ResourceType, resource: str) -> list[JsonObject]:
        return []

    def is_settled(self, live: JsonObject, desired: JsonObject) -> bool:
        return covers(live, desired)

    def refusal(self, apply: ApplyObject) -> StampRefusal | None:
        return StampRefusal("no") if apply.object["metadata"]["name"] in self._refused else None

    def carry_out(self, action: Action) -> None:
        match action:
            case LookUpKind(kind):
                self._kinds.add(kind)
            case ApplyObject():
                self._apply(action)

    def _apply(self, apply: ApplyObject) -> None:
        obj = apply.object
        name = obj["metadata"]["name"]
        if apply.is_run and name in self.objects:
            # The server answers AlreadyExists.
            assert is_same_run(self.objects[name], obj)
            return
        if self.refuse & {name, obj["metadata"]["labels"]["carto.run/resource-name"]}:
            self._refused.add(name)
            return
        self.applied.append(name)
        live = self.objects.get(name)
        if live is None:
            self._uids += 1
        uid = live["metadata"]["uid"] if live else str(self._uids)
        self.objects[name] = {**copy.deepcopy(obj), "metadata": {**copy.deepcopy(obj["metadata"]), "uid": uid}}


class Chain:
    """An owner with its blueprint, its templates and a cluster."""

    def __init__(self, *resources: JsonObject, templates: dict[str, TemplateSpec], **spec: Any) -> None:
        owner = workload(**spec)
        owner["metadata"] |= {"uid": "u", "generation": 1}
        self.owner = owner
        self.blueprint = ClusterSupplyChain.model_validate(blueprint(*resources))
        self.templates = templates
        self.cluster = MemoryCluster()

    def reconcile(self, *, killed_after: int | None = None) -> JsonObject:
        """Realize the owner until nothing is left to do, and return its status.

        `killed_after`: the number of actions after which the process is killed, before it writes the status.
        """
        self.cluster.begin()
        carried_out = 0
        realization = Realization(
            self.owner,
            Workload.model_validate(self.owner).spec,
            self.blueprint,
            find=lambda _, name: self.templates.get(name),
        )
        plan = OwnerPlan([LookUpKind(Kind("", ""))])
        while plan.actions:
            plan = realization.plan(self.cluster)
            for action in plan.actions:
                if carried_out == killed_after:
                    return {}
                self.cluster.carry_out(action)
                carried_out += 1
        if killed_after is not None:
            return {}
        before = (self.owner.get("status") or {}).get("resources") or ()
        resources = resource_statuses(plan.states, before, now=NOW)
        findings = owner_findings(words_of("Workload"), resources)
        status = with_findings(self.owner, findings, now=NOW, resources=resources)
        self.owner = {**self.owner, "status": status}
        return status


def making(body: JsonObject, **fields: Any) -> TemplateSpec:
    return ConfigTemplateSpec.model_validate({"template": body, "configPath": "data", **fields})


PICKS = ("first", "last")
"""The values of a parameter of the owner, and of a label by which it picks options."""


@st.composite
def chains(draw: st.DrawFn) -> tuple[list[JsonObject], dict[str, TemplateSpec]]:
    """Return up to thirty resources in any order, each of which copies what it takes from others.

    Some pass an input through, some choose between two templates, and some make runs.
    """
    resources = []
    templates = {}
    for number in range(draw(st.integers(1, 30))):
        name = f"r{number}"
        producers = draw(st.lists(st.integers(0, number - 1), max_size=3, unique=True)) if number else []
        inputs = [{"name": f"i{producer}", "resource": f"r{producer}"} for producer in producers]
        data = {f"d{producer}": f"$(configs.i{producer}.config.own)$+" for producer in producers}
        reference: dict[str, Any] = {}
        match draw(st.sampled_from(["mutable", "mutable", "immutable", "options", "passThrough"])):
            case "passThrough" if inputs:
                passing = {"passThrough": inputs[0]["name"], "selector": {"matchLabels": {"type": "web"}}}
                other = {"name": "none", "selector": {"matchLabels": {"type": "none"}}}
                reference = {"templateRef": {"options": [passing, other]}}
            case "options":
                options = [{"name": f"{name}-{pick}", "selector": {"matchLabels": {"pick": pick}}} for pick in PICKS]
                for pick in PICKS:
                    own = f"{name}-{pick}-$(params.v)$"
                    templates[f"{name}-{pick}"] = making(config_map(f"{name}-{pick}", own=own, **data))
                reference = {"templateRef": {"options": options}}
            case "immutable":
                body = {**config_map("", own=f"{name}-$(params.v)$", **data), "metadata": {"generateName": f"{name}-"}}
                templates[name] = making(body, lifecycle="immutable")
            case _:
                templates[name] = making(config_map(name, own=f"{name}-$(params.v)$", **data))
        resources.append(resource(name, configs=inputs, **reference))
    return draw(st.permutations(resources)), templates


def live(chain: Chain, names: Collection[str]) -> dict[str, JsonObject]:
    """Return the data of the objects with these names."""
    return {name: obj["data"] for name, obj in chain.cluster.objects.items() if name in names}


def set_owner(chain: Chain, *, value: str, pick: str) -> None:
    chain.owner["spec"]["params"] = [{"name": "v", "value": value}]
    chain.owner["metadata"] = {**chain.owner["metadata"], "labels": {"type": "web", "pick": pick}}


def few(data: st.DataObject, names: Sequence[str]) -> list[str]:
    """Draw two of these names, one or none."""
    return data.draw(st.lists(st.sampled_from(names), max_size=2, unique=True)) if names else []


@given(chains(), st.data())
@settings(max_examples=40)
def test_random_chains_end_in_the_state_of_a_fresh_pass(
    made: tuple[list[JsonObject], dict[str, TemplateSpec]], data: st.DataObject
) -> None:
    resources, templates = made
    fresh = Chain(*resources, templates=templates)
    set_owner(fresh, value="last", pick="last")
    wanted = fresh.reconcile()
    assert condition(wanted, "Ready")[0] == "True"
    chain = Chain(*resources, templates=dict(templates))
    names = [each["name"] for each in resources]
    for _ in range(data.draw(st.integers(0, 6))):
        set_owner(chain, value=data.draw(st.sampled_from(PICKS)), pick=data.draw(st.sampled_from(PICKS)))
        chain.cluster.refuse = set(few(data, names))
        gone = few(data, sorted(templates))
        chain.templates = {name: template for name, template in templates.items() if name not in gone}
        for name in few(data, sorted(chain.cluster.objects)):
            del chain.cluster.objects[name]
        chain.reconcile(killed_after=data.draw(st.none() | st.integers(0, 40)))
    chain.cluster.refuse = set()
    chain.templates = templates
    set_owner(chain, value="last", pick="last")
    status = chain.reconcile()
    named = {name for name, obj in fresh.cluster.objects.items() if "generateName" not in obj["metadata"]}
    assert live(chain, named) == live(fresh, named)
    assert condition(status, "Ready") == condition(wanted, "Ready")
    assert list(map(comparable, status["resources"])) == list(map(comparable, wanted["resources"]))
    assert chain.reconcile() == status
    assert chain.cluster.applied == []


def comparable(resource: JsonObject) -> JsonObject:
    """Return the status of a resource without uids, and without the names and numbers of its runs."""
    reference = resource.get("stampedRef", {})
    name = "" if "lastRun" in resource else reference.get("name")
    kept = {key: value for key, value in reference.items() if key not in ("uid", "name")}
    return {**resource, "stampedRef": {**kept, "name": name}, "lastRun": (resource.get("lastRun") or {}).get("stamp")}


def test_each_object_is_applied_once_in_the_order_of_its_inputs() -> None:
    first = making(config_map("a", v="1"))
    second = making(config_map("b", v="$(config.v)$"))
    takes = [{"name": "x", "resource": "a"}]
    chain = Chain(resource("b", configs=takes), resource("a"), templates={"a": first, "b": second})
    chain.reconcile()
    assert chain.cluster.applied == ["a", "b"]
    chain.reconcile()
    assert chain.cluster.applied == []


def test_hundred_resources_that_follow_each_other_are_realized_at_once() -> None:
    """Forward references: Cartographer reads the resources in the order in which they are written, and fails."""
    templates = {"r0": making(config_map("r0", v="1"))}
    resources = [resource("r0")]
    for number in range(1, 100):
        name = f"r{number}"
        templates[name] = making(config_map(name, v="$(config.v)$"))
        resources.append(resource(name, configs=[{"name": "x", "resource": f"r{number - 1}"}]))
    chain = Chain(*resources[::-1], templates=templates)
    assert condition(chain.reconcile(), "Ready")[0] == "True"
    assert len(chain.cluster.objects) == 100


@pytest.mark.parametrize("forged", ["- [", "{a: 1}\n", "x" * 2000, "&a [*a]\n"])
def test_forged_preview_is_no_value(forged: str) -> None:
    """The digest of a kept output has to be that of its preview, written as previews are."""
    later = making(config_map("a", v="1"), configPath="data.later")
    takes = [{"name": "x", "resource": "a"}]
    templates = {"a": later, "b": making(config_map("b", v="$(config)$"))}
    chain = Chain(resource("a"), resource("b", configs=takes), templates=templates)
    chain.reconcile()
    [first, _] = chain.owner["status"]["resources"]
    output = {"name": "config", "preview": forged, "digest": "sha256:0", "lastTransitionTime": "2026-03-03T10:00:00Z"}
    first["outputs"] = [output]
    status = chain.reconcile()
    assert condition(status["resources"][1], "ResourceSubmitted")[1] == "WaitingForInput"
    assert "b" not in chain.cluster.objects


def test_error_of_ytt_with_data_of_a_secret_is_not_told() -> None:
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"v": "aGlkZGVu"}}
    ytt = ConfigTemplateSpec.model_validate({"ytt": "a: 1", "configPath": "data"})
    takes = [{"name": "x", "resource": "a"}]
    chain = Chain(resource("a"), resource("b", configs=takes), templates={"a": making(body), "b": ytt})
    chain.cluster.ytt = StampError("fail: aGlkZGVu")
    status = chain.reconcile()
    assert condition(status["resources"][1], "ResourceSubmitted")[1] == "TemplateStampFailure"
    assert "aGlkZGVu" not in str(status)


def nested(levels: int) -> Any:
    value: Any = "v"
    for _ in range(levels):
        value = [value]
    return value


def test_output_that_is_nested_too_deep_is_missing() -> None:
    later = making(config_map("a", v="1"), configPath="deep")
    chain = Chain(resource("a"), templates={"a": later})
    chain.reconcile()
    chain.cluster.objects["a"]["deep"] = nested(900)
    assert condition(chain.reconcile()["resources"][0], "ResourceSubmitted")[1] == "MissingValueAtPath"


@pytest.mark.parametrize("value", ["\x00\x01\ufffe", "\ud800", 2**64])
def test_odd_values_of_params_pass_or_fail_alone(value: Any) -> None:
    templates = {"a": making(config_map("a", v="$(params.p)$")), "b": making(config_map("b", v="1"))}
    chain = Chain(resource("a"), resource("b"), templates=templates, params=[{"name": "p", "value": value}])
    status = chain.reconcile()
    assert condition(status["resources"][1], "Ready")[0] == "True"
