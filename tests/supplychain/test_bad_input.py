"""Bad input of operators and developers, end to end: each is told with its place, and others go on."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from kardinal.objects import CONFIG_MAP, JsonObject
from kardinal_supplychain.api.kinds import CLUSTER_SUPPLY_CHAIN
from tests.supplychain.chains import (
    API_VERSION,
    Chains,
    blueprint,
    condition,
    config_map,
    resource,
    template,
    workload,
)
from tests.support.accounts import rule
from tests.support.world import World

DEV = {"name": "dev"}
IMAGE = "ClusterImageTemplate"
HONEST = template("honest", config_map("$(workload.metadata.name)$-honest", v="$(params.v)$"))
GOOD = blueprint(resource("honest"), name="good", selector={"type": "good"}, serviceAccountRef=DEV)
COPY = template("copy", config_map("copy", v="$(config.v)$"))
BUILD = template("build", config_map("build", image="shop:1"), kind=IMAGE, imagePath="data.image")


def good(value: str) -> JsonObject:
    return workload("good", labels={"type": "good"}, params=[{"name": "v", "value": value}])


@pytest.fixture
async def beside(chains: Chains) -> Chains:
    """Return a world with a chain that works, beside which others are bad."""
    await chains.account("dev", rule("*", on="configmaps"))
    await chains.apply(HONEST, COPY, BUILD, GOOD, good("1"))
    return chains


async def goes_on(chains: Chains, value: str = "2") -> None:
    """Check that the chain that works follows its Workload."""
    await chains.apply(good(value))
    assert (await chains.get(CONFIG_MAP, "good-honest"))["data"] == {"v": value}


def takes(producer: str, **inputs: str) -> list[JsonObject]:
    return [{"name": "in", "resource": producer, **inputs}]


PASSING = {
    "options": [
        {"passThrough": "none", "selector": {"matchLabels": {"a": "b"}}},
        {"name": "copy", "selector": {"matchLabels": {"type": "web"}}},
    ]
}


@pytest.mark.parametrize(
    ("resources", "field"),
    [
        (
            [resource("a", "copy", configs=takes("b")), resource("b", "copy", configs=takes("a"))],
            "spec.resources[0]: these resources wait",
        ),
        ([resource("a", "copy", configs=takes("a"))], "spec.resources[0].configs[0].resource"),
        ([resource("a", "copy", configs=takes("gone"))], "spec.resources[0].configs[0].resource"),
        (
            [resource("i", "build", kind=IMAGE), resource("a", "copy", configs=takes("i"))],
            "spec.resources[1].configs[0].resource",
        ),
        ([resource("a", templateRef=PASSING)], "spec.resources[0].templateRef.options[0].passThrough"),
    ],
    ids=["cycle", "own output", "unknown resource", "wrong kind", "unknown input"],
)
async def test_blueprint_that_cannot_be_realized_stamps_nothing(
    beside: Chains, resources: list[JsonObject], field: str
) -> None:
    await beside.apply(blueprint(*resources, serviceAccountRef=DEV), workload())
    status, reason, message = condition(await beside.status("chain", CLUSTER_SUPPLY_CHAIN), "Ready")
    assert (status, reason) == ("False", "InvalidBlueprint")
    assert field in message
    assert condition(await beside.status(), "Ready") == ("False", "InvalidBlueprint", message)
    assert {each["metadata"]["name"] for each in await beside.world.objects(CONFIG_MAP)} & {"copy", "build"} == set()
    await goes_on(beside)


@pytest.mark.parametrize(
    ("values", "said"),
    [(("web", "web"), "[2] matching options [honest, copy]"), (("x", "y"), "[0] matching options []")],
    ids=["tie", "none"],
)
async def test_options_of_which_not_one_wins_stop_their_resource_alone(
    beside: Chains, values: tuple[str, str], said: str
) -> None:
    names = ("honest", "copy")
    options = [
        {"name": name, "selector": {"matchLabels": {"type": value}}} for name, value in zip(names, values, strict=True)
    ]
    chain = blueprint(resource("bad", templateRef={"options": options}), resource("honest"), serviceAccountRef=DEV)
    await beside.apply(chain, workload(params=[{"name": "v", "value": "x"}]))
    status, reason, message = condition(await beside.resource("bad"), "ResourceSubmitted")
    assert (status, reason) == ("False", "TemplateOptionsMatchError")
    assert said in message
    assert "[bad]" in message
    assert (await beside.get(CONFIG_MAP, "web-honest"))["data"] == {"v": "x"}


async def test_image_that_is_read_as_an_object_is_told_with_the_remedy(beside: Chains) -> None:
    """Pages of Cartographer write `$(images.x)$` for the image; an object has its name, too."""
    for field, said in (("$(images.in)$", "write $(images.in.image)$"), ("$(images.in.image)$", "")):
        using = template("using", config_map("using", image=field))
        chain = blueprint(
            resource("build", kind=IMAGE), resource("using", images=takes("build")), serviceAccountRef=DEV
        )
        await beside.apply(using, chain, workload())
        status, reason, message = condition(await beside.resource("using"), "ResourceSubmitted")
        if said:
            assert (status, reason) == ("False", "TemplateRejectedByAPIServer")
        assert said in message
    assert (await beside.get(CONFIG_MAP, "using"))["data"] == {"image": "shop:1"}


async def test_cluster_scoped_object_is_refused(beside: Chains) -> None:
    """Cartographer stamps it, with an owner reference that Kubernetes does not honour."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "stamped"}}
    await beside.apply(template("bad", body), blueprint(resource("bad"), serviceAccountRef=DEV), workload())
    status, reason, message = condition(await beside.resource("bad"), "ResourceSubmitted")
    assert (status, reason) == ("False", "TemplateStampFailure")
    assert "cluster-scoped" in message
    await goes_on(beside)


@pytest.mark.parametrize("lifecycles", [("mutable", "immutable"), ("immutable", "mutable"), ("immutable",) * 2])
async def test_second_resource_with_the_object_of_another_is_refused(
    beside: Chains, lifecycles: tuple[str, str]
) -> None:
    names = ("first", "second")
    body = config_map("same", v="$(params.v)$")
    await beside.apply(
        *(template(name, body, lifecycle=each) for name, each in zip(names, lifecycles, strict=True)),
        blueprint(*map(resource, names), serviceAccountRef=DEV),
        workload(params=[{"name": "v", "value": "x"}]),
    )
    assert condition(await beside.resource("first"), "Ready")[0] == "True"
    _, reason, message = condition(await beside.resource("second"), "ResourceSubmitted")
    assert reason == "DuplicateObject"
    assert "configmaps/same" in message
    labels = (await beside.get(CONFIG_MAP, "same"))["metadata"]["labels"]
    assert labels["carto.run/resource-name"] == "first"


async def test_longest_names_are_stamped(beside: Chains) -> None:
    name = "n" * 253
    run = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "$(workload.metadata.name)$"}}
    label = {"labels": {"from": "$(labels['carto\\.run/workload-name'])$"}}
    body = {
        **config_map("$(workload.metadata.name)$", a="b"),
        "metadata": {"name": "$(workload.metadata.name)$", **label},
    }
    chain = blueprint(resource(name, name), resource("run", kind="ClusterTemplate"), name=name, serviceAccountRef=DEV)
    await beside.apply(
        template(name, body),
        template("run", {**run, "data": {"a": "b"}}, kind="ClusterTemplate", lifecycle="immutable"),
        chain,
        workload(name),
    )
    assert condition(await beside.status(name), "Ready")[0] == "True"
    found = await beside.get(CONFIG_MAP, name)
    assert found["metadata"]["labels"]["from"] == found["metadata"]["labels"]["carto.run/workload-name"]
    assert (await beside.resource("run", name))["stampedRef"]["name"].startswith("n" * 53)
    await beside.apply(blueprint(resource("honest"), name=name, serviceAccountRef=DEV))
    assert await beside.world.find(CONFIG_MAP, name) is None


async def test_values_of_a_secret_are_told_nowhere(beside: Chains) -> None:
    value = base64.b64encode(b"a hidden value?").decode()
    await beside.account("dev", rule("*", on="configmaps"), rule("*", on="secrets"))
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"v": value}}
    labelled = {**config_map("l"), "metadata": {"name": "l", "labels": {"a": "$(config.v)$"}}}
    numbers = {**config_map("n"), "data": {"a": ["$(config.v)$"]}}
    field = {"key": "data.v", "operator": "In", "values": ["x"]}
    is_x = {"matchFields": [field]}
    is_not_x = {"matchFields": [{**field, "operator": "NotIn"}]}
    rules = {"multiMatch": {"healthy": is_x, "unhealthy": is_not_x}}
    names = ("label", "number", "path", "copied", "honest")
    taking = [resource(name, configs=takes("secret")) for name in names]
    with capture_logs() as logs:
        await beside.apply(
            template("secret", secret, healthRule=rules),
            template("label", labelled),
            template("number", numbers),
            template("path", config_map("p", v="$(config.v.x)$")),
            template("copied", config_map("c", v="$(config.v)$"), healthRule=rules),
            blueprint(resource("secret"), *taking, serviceAccountRef=DEV),
            workload(params=[{"name": "v", "value": "x"}]),
        )
        status = await beside.status()
    reasons = {each["name"]: condition(each, "ResourceSubmitted")[1] for each in status["resources"]}
    assert reasons["label"] == reasons["number"] == "TemplateRejectedByAPIServer"
    assert reasons["path"] == "TemplateStampFailure"
    assert {condition(each, "Healthy")[0] for each in status["resources"] if each["name"] in ("secret", "copied")} == {
        "False"
    }
    assert (await beside.get(CONFIG_MAP, "c"))["data"] == {"v": value}
    assert "an object was refused" in {entry["event"] for entry in logs}
    for told in (status, await beside.world.events(), logs):
        assert value not in str(told)
    await goes_on(beside)


def of_ytt(name: str, text: str) -> JsonObject:
    spec = {"ytt": text, "configPath": "data"}
    return {"apiVersion": API_VERSION, "kind": "ClusterConfigTemplate", "metadata": {"name": name}, "spec": spec}


NAMED = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {}\ndata:\n  a: b\n"
DOUBLED = "#@ def f():\n#@   x = [0]\n#@   for i in range(40):\n#@     x = x + x\n#@   end\n#@   return x\n#@ end\n"
BAD_YTT = {
    "bomb": (f"{DOUBLED}a: #@ len(f())\n", "MiB of memory"),
    "endless": ("a: #@ [1 for i in range(1 << 30) for j in range(1 << 30) if i < 0]\n", "longer than 4 s"),
    "fails": ("#@ fail('no image today')\n", "no image today"),
    "empty": ("---\n", "no document"),
    "no-yaml": ("a: [\n", "stdin.yml"),
    "list": ("- a\n", "a list"),
    "kindless": ("metadata:\n  name: x\n", "no apiVersion"),
}


async def test_bad_templates_of_ytt_leave_the_others_of_a_chain_alone(world: World, real_ytt: Path) -> None:
    chains = await Chains.start(world, ytt=real_ytt)
    await chains.account("dev", rule("*", on="configmaps"))
    two = f"{NAMED.format('first')}---\n{NAMED.format('second')}"
    names = [*BAD_YTT, "two", "honest"]
    await chains.apply(
        *(of_ytt(name, text) for name, (text, _) in BAD_YTT.items()),
        of_ytt("two", two),
        HONEST,
        blueprint(*map(resource, names), serviceAccountRef=DEV),
        workload(params=[{"name": "v", "value": "x"}]),
    )
    status = await chains.status()
    told: dict[str, Any] = {each["name"]: condition(each, "ResourceSubmitted") for each in status["resources"]}
    for name, (_, said) in BAD_YTT.items():
        state, reason, message = told[name]
        assert (state, reason) == ("False", "TemplateStampFailure"), name
        assert said in message or (name == "bomb" and "longer than 4 s" in message)
        assert f"[{name}]" in message
    assert told["two"][0] == told["honest"][0] == "True"
    assert {each["metadata"]["name"] for each in await world.objects(CONFIG_MAP)} >= {"first", "web-honest"}
    assert await world.find(CONFIG_MAP, "second") is None
    await chains.apply(workload(params=[{"name": "v", "value": "y"}]))
    assert (await chains.get(CONFIG_MAP, "web-honest"))["data"] == {"v": "y"}
