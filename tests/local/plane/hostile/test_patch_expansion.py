"""Small requests that describe large work: what one of them may cost the API server of the local plane.

Each is one request of a user who may write the object. A body has three mebibytes at most; what is made of it
has a bound of its own. Costs are CPU time of this process, in which the plane runs, with room for slow machines.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import pytest

from tests.local.contract.examples import deployment
from tests.local.plane.wire import CONFIG_MAPS, WIDGETS, Answer, Http, config_map, widget_definition

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
YAML = "application/yaml"
KIBIBYTE = 1024
pytestmark = pytest.mark.timeout(240)
"""For CPU time of 15 s on a machine that has other things to do."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Fail when the block takes more CPU time than that."""
    began = time.process_time()
    yield
    assert time.process_time() - began < seconds


def not_applied(answer: Answer) -> bool:
    message = "the server rejected our request due to an error in our request"
    return (answer.status, answer.message) == (422, message)


@pytest.mark.parametrize("copies", [13, 40])
async def test_a_patch_copies_three_mebibytes_at_most(http: Http, copies: int) -> None:
    await http.post(CONFIG_MAPS, config_map("a", text="x" * KIBIBYTE))
    operations = [{"op": "copy", "from": "/data", "path": f"/data/{number}"} for number in range(copies)]
    with at_most(5):
        assert not_applied(await http.json(f"{CONFIG_MAPS}/a", operations))
    assert (await http.get(f"{CONFIG_MAPS}/a")).body["data"] == {"text": "x" * KIBIBYTE}


async def test_copies_of_a_patch_are_added_up(http: Http) -> None:
    await http.post(CONFIG_MAPS, config_map("a", text="x" * 1000 * KIBIBYTE))
    copy = {"op": "copy", "from": "/data/text", "path": "/data/again"}
    remove = {"op": "remove", "path": "/data/again"}
    assert (await http.json(f"{CONFIG_MAPS}/a", [copy, remove] * 3)).status == 200
    assert not_applied(await http.json(f"{CONFIG_MAPS}/a", [copy, remove] * 4))


async def test_a_strategic_merge_of_long_lists_takes_linear_time(http: Http) -> None:
    await http.post(CONFIG_MAPS, config_map("a"))
    finalizers = [f"example.com/{number}" for number in range(20_000)]
    patch = {"metadata": {"finalizers": finalizers, "$setElementOrder/finalizers": finalizers}}
    with at_most(8):
        patched = await http.strategic(f"{CONFIG_MAPS}/a", patch)
    assert (patched.status, len(patched.body["metadata"]["finalizers"])) == (200, 20_000)
    drop = {"metadata": {"$deleteFromPrimitiveList/finalizers": finalizers[1:]}}
    with at_most(8):
        assert (await http.strategic(f"{CONFIG_MAPS}/a", drop)).body["metadata"]["finalizers"] == finalizers[:1]


async def test_a_strategic_merge_of_keyed_lists_takes_linear_time(http: Http) -> None:
    variables = [{"name": f"V{number}", "value": "1"} for number in range(8_000)]
    obj = deployment("a")
    obj["spec"]["template"]["spec"]["containers"] = [{"name": "app", "image": "app", "env": variables}]
    assert (await http.post(DEPLOYMENTS, obj)).status == 201

    def patch(env: list[dict[str, str]]) -> dict[str, Any]:
        return {"spec": {"template": {"spec": {"containers": [{"name": "app", "env": env}]}}}}

    with at_most(8):
        changed = await http.strategic(f"{DEPLOYMENTS}/a", patch([{**each, "value": "2"} for each in variables]))
    (container,) = changed.body["spec"]["template"]["spec"]["containers"]
    assert {each["value"] for each in container["env"]} == {"2"}
    with at_most(8):
        dropped = patch([{"name": each["name"], "$patch": "delete"} for each in variables])
        changed = await http.strategic(f"{DEPLOYMENTS}/a", dropped)
    (container,) = changed.body["spec"]["template"]["spec"]["containers"]
    assert "env" not in container


async def test_keys_that_stand_twice_are_merged_in_linear_time(http: Http) -> None:
    entries = b",".join(b'"data":{"k%d":"1"}' % number for number in range(20_000))
    body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},' + entries + b"}"
    with at_most(8):
        created = await http("POST", CONFIG_MAPS, body)
    assert (created.status, len(created.body["data"])) == (201, 20_000)


async def test_a_long_key_is_not_repeated_for_every_item_below_it(http: Http) -> None:
    items = b",".join([b"1"] * 400_000)
    head = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}, "'
    body = head + b"k" * 1_000_000 + b'": [' + items + b"]}"
    with at_most(8):
        assert (await http("POST", CONFIG_MAPS, body)).status == 201


async def test_an_alias_of_a_long_text_counts_with_its_length(http: Http) -> None:
    """50 KB of YAML that are 2 GB of JSON."""
    aliases = ", ".join(["*a"] * 100)
    body = f"a: &a '{'x' * 50_000}'\nb: &b [{aliases}]\nc: [{', '.join(['*b'] * 4)}]\n".encode()
    with at_most(5):
        refused = await http("POST", CONFIG_MAPS, body, content_type=YAML)
    assert (refused.status, refused.body["reason"]) == (400, "BadRequest")
    assert "document contains excessive aliasing" in refused.message


@pytest.mark.parametrize("opening", [b"[", b"- ", b"? ", b"{a: "], ids=["flow", "block", "key", "mapping"])
async def test_deeply_nested_yaml_does_not_end_the_process(http: Http, opening: bytes) -> None:
    with at_most(8):
        refused = await http("POST", CONFIG_MAPS, opening * 100_000, content_type=YAML)
    assert (refused.status, refused.body["reason"]) == (400, "BadRequest")
    assert (await http.post(CONFIG_MAPS, config_map("after"))).status == 201


async def test_an_integer_of_many_parts_is_a_text(http: Http) -> None:
    """YAML 1.1 has integers to the base of sixty, which the API server does not read as such."""
    text = ":".join(["1"] * 150_000)
    body = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n  ports: 22:22\n  a: {text}\n".encode()
    with at_most(5):
        created = await http("POST", CONFIG_MAPS, body, content_type=YAML)
    assert (created.status, created.body["data"]) == (201, {"ports": "22:22", "a": text})


async def test_defaults_within_defaults_do_not_multiply(http: Http) -> None:
    """Ten levels of ten defaults are ten thousand million objects in the text of a small definition."""
    node: dict[str, Any] = {"type": "object"}
    for _ in range(10):
        node = {"type": "object", "properties": {"x": {"type": "array", "items": node, "default": [{}] * 10}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": node}}}
    with at_most(15):
        refused = await http.post(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", widget_definition(schema=schema)
        )
    assert (refused.status, refused.body["reason"]) == (413, "RequestEntityTooLarge")


async def test_defaults_of_many_items_are_bounded(http: Http) -> None:
    text = {"type": "string", "default": "x" * 10_000}
    items = {"type": "array", "items": {"type": "object", "properties": {"text": text}}}
    spec = {"type": "object", "properties": {"items": items}}
    await http.define(widget_definition(schema={"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}))
    assert (await http.post(WIDGETS, widget("a", items=[{}] * 10))).status == 201
    with at_most(5):
        refused = await http.post(WIDGETS, widget("b", items=[{}] * 20_000))
    assert (refused.status, refused.body["reason"]) == (413, "RequestEntityTooLarge")


async def test_a_rule_writes_a_number_with_a_hundred_digits_at_most(http: Http) -> None:
    rule = {"rule": "'%.999999999f'.format([1.0 * self.size]).size() > 0"}
    spec = {"type": "object", "properties": {"size": {"type": "number"}}, "x-kubernetes-validations": [rule]}
    await http.define(widget_definition(schema={"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}))
    with at_most(2):
        refused = await http.post(WIDGETS, widget("a", size=1))
    assert (refused.status, refused.body["reason"]) == (422, "Invalid")
    assert "at most 100 digits after the point" in refused.message


async def test_conflicts_are_named_up_to_a_length(http: Http) -> None:
    """Each names its path, and a path may be as long as a key."""
    await http.define(widget_definition(schema=anything()))
    fields = {f"f{number}": 1 for number in range(2_000)}
    mine = widget("a", **{"k" * 100_000: fields})
    apply = f"{WIDGETS}/a"
    assert (await http.apply(apply, mine, fieldManager="one")).status == 201
    theirs = widget("a", **{"k" * 100_000: dict.fromkeys(fields, 2)})
    with at_most(5):
        refused = await http.apply(apply, theirs, fieldManager="two")
    assert (refused.status, refused.body["reason"]) == (409, "Conflict")
    assert len(orjson.dumps(refused.body)) < 8 * KIBIBYTE * KIBIBYTE


def widget(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def anything() -> dict[str, Any]:
    """Return a schema that takes whatever stands in spec."""
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
