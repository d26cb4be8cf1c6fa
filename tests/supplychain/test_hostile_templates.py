"""Hostile templates, parameters and blueprints: each is refused with its place, at a bounded cost, and others go on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kardinal.objects import CONFIG_MAP, JsonObject
from kardinal.objects.conditions import MESSAGE_LIMIT
from kardinal_supplychain.api.templates import ConfigTemplateSpec
from kardinal_supplychain.realize.context import InputValues, template_context
from kardinal_supplychain.realize.stamp import StampError, render_template
from tests.supplychain.chains import Chains, blueprint, condition, config_map, resource, template, workload
from tests.support.accounts import rule

OWNER: dict[str, Any] = {"kind": "Workload", "metadata": {"name": "web", "namespace": "team"}, "spec": {}}
DEV = {"name": "dev"}
BINARY = "".join(map(chr, range(256))) + "\u2028\u2029\ufeff\ufffe\uffff"


def nested(levels: int) -> Any:
    value: Any = {"x": "innermost"}
    for _ in range(levels):
        value = {"x": value}
    return value


def rendered(body: JsonObject, params: JsonObject) -> JsonObject:
    spec = ConfigTemplateSpec.model_validate({"template": body, "configPath": "data"})
    return render_template(spec, template_context(OWNER, params=params, inputs=InputValues(), labels={}))


@pytest.mark.parametrize("text", ["$(", "$($(", "$(params.n", "$(params.n)", "$(params.n) $", "$5", ")$", "$" * 10_000])
def test_text_without_a_whole_tag_stays(text: str) -> None:
    assert rendered({"a": text}, {"n": 1}) == {"a": text}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$(params.n)$)$", "1)$"),
        ("$$(params.n)$$", "$1$"),
        ("$(params.n)$$(", "1$("),
        ("$(params['\x00'])$", "zero"),
        ("$(params.binary)$", "\x00\x01\x7f\x80\xff"),
        ("<$(params.binary)$>", "<\x00\x01\x7f\x80\xff>"),
        ("$(params.o)$ ", '{"k\\u0000":"\\u0001"} '),
        ("$(params.deep..x)$ ", None),
        ("$(params.tag)$ $(params.tag)$", "$(params.n)$ $(params.n)$"),
    ],
)
def test_tag_inserts_binary_text_and_text_like_a_tag_as_it_is(text: str, value: str | None) -> None:
    params = {
        "n": 1,
        "\x00": "zero",
        "binary": "\x00\x01\x7f\x80\xff",
        "o": {"k\x00": "\x01"},
        "deep": nested(50),
        "tag": "$(params.n)$",
    }
    if value is None:
        with pytest.raises(StampError, match="too many results"):
            rendered({"a": text}, params)
    else:
        assert rendered({"a": text}, params) == {"a": value}


@pytest.mark.parametrize(
    ("text", "params", "said"),
    [
        ("$(params..absent)$", {"p": nested(60)}, "empty list: params..absent"),
        ("$(params..absent)$", {"p": nested(10_000)}, "empty list: params..absent"),
        ("$(params.p)$", {"p": nested(10_000)}, "path [a]: "),
        ("x $(params.p)$", {"p": nested(10_000)}, "path [a]: "),
        ("$(params..x)$", {"p": {str(n): {"x": n} for n in range(100_000)}}, "more than 100,000 steps"),
        ("$(params.p[?(@.x==1)])$", {"p": [{"x": 1}] * 100_000}, "more than 100,000 steps"),
        (f"$({'[' * 10_000})$", {}, "at most 1024 characters"),
        (f"$({'(' * 1_000})$", {}, "path [a]: "),
        (f"$(params{'[0]' * 300})$", {"p": nested(60)}, "path [a]: "),
        ("$(a$(params.n)$", {"n": 1}, "is not a jsonpath"),
    ],
)
def test_tag_of_a_stranger_is_refused_with_its_place(text: str, params: JsonObject, said: str) -> None:
    with pytest.raises(StampError) as refused:
        rendered({"a": text}, params)
    assert said in str(refused.value)
    assert len(str(refused.value)) < 1_000


@pytest.mark.parametrize(("more", "accepted"), [(0, True), (1, False)])
def test_object_of_one_mebibyte_is_the_largest(more: int, *, accepted: bool) -> None:
    value = "x" * ((1 << 20) - len(json.dumps({"a": ""}, separators=(",", ":"))) + more)
    if accepted:
        assert rendered({"a": "$(params.p)$"}, {"p": value}) == {"a": value}
    else:
        with pytest.raises(StampError, match="1,048,577 bytes"):
            rendered({"a": "$(params.p)$"}, {"p": value})


HOSTILE: dict[str, JsonObject] = {
    "unclosed-path": config_map("x", a="$(params['p)$"),
    "brackets": config_map("x", a=f"$({'[' * 10_000})$"),
    "descendants": config_map("x", a="$(workload..absent)$"),
    # A server reads what is applied as YAML, in which a key has at most 1,024 characters.
    "long-keys": {**config_map("x"), "data": {"k" * 1_000: {"k" * 1_000: "$(params.absent)$"}}},
    "expanded": config_map("x", **{f"k{n}": "$(params.large)$" for n in range(20)}),
    "namespace": {**config_map("x"), "metadata": {"name": "x", "namespace": "kube-system"}},
    "kindless": {"apiVersion": "v1", "metadata": {"name": "x"}},
    "unnamed": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}},
    "labels": {**config_map("x"), "metadata": {"name": "x", "labels": {"a": "$(params.object)$"}}},
    "object-as-name": {**config_map("x"), "metadata": {"name": "$(params.object)$"}},
    "binary-name": {**config_map("x"), "metadata": {"name": "$(params.binary)$"}},
}


async def test_hostile_templates_leave_the_others_of_a_chain_alone(chains: Chains) -> None:
    await chains.account("dev", rule("*", on="configmaps"))
    params = [
        {"name": "large", "value": "x" * 100_000},
        {"name": "object", "value": {"k": "v"}},
        {"name": "binary", "value": BINARY},
    ]
    names = [*HOSTILE, "honest"]
    await chains.apply(
        *(template(name, body) for name, body in HOSTILE.items()),
        template("honest", config_map("web-honest", a="$(params.binary)$")),
        blueprint(*map(resource, names), serviceAccountRef=DEV),
        workload(params=params),
    )
    status = await chains.status()
    assert [each["name"] for each in status["resources"]] == names
    for each in status["resources"][:-1]:
        state, reason, message = condition(each, "ResourceSubmitted")
        assert (state, reason) in (("False", "TemplateStampFailure"), ("False", "TemplateRejectedByAPIServer")), each
        assert 0 < len(message) <= MESSAGE_LIMIT
        assert each["name"] in message
    assert condition(status["resources"][-1], "Ready")[0] == "True"
    assert (await chains.get(CONFIG_MAP, "web-honest"))["data"] == {"a": BINARY}
    await chains.apply(blueprint(resource("honest"), serviceAccountRef=DEV))
    assert condition(await chains.status(), "Ready")[0] == "True"


async def test_hundred_resources_are_stamped_each_after_its_producer(chains: Chains) -> None:
    await chains.account("dev", rule("*", on="configmaps"))
    first = config_map("web-0", n="0")
    following = config_map("$(params.name)$", n="$(config.n)$x")
    inputs = [
        resource(
            f"r{number}",
            "following",
            configs=[{"name": "c", "resource": f"r{number - 1}"}],
            params=[{"name": "name", "value": f"web-{number}"}],
        )
        for number in range(1, 100)
    ]
    # Written backwards: the order of the stamping follows from the inputs.
    chain = blueprint(*reversed(inputs), resource("r0", "first"), serviceAccountRef=DEV)
    await chains.apply(template("first", first), template("following", following), chain, workload())
    status = await chains.status()
    assert condition(status, "Ready")[0] == "True"
    assert len(status["resources"]) == 100
    assert (await chains.get(CONFIG_MAP, "web-99"))["data"] == {"n": "0" + "x" * 99}
