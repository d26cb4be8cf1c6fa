"""Server-side apply as a pure function."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kardinal_local.plane.errors import ApplyConflict, ApplyError
from tests.local.plane.applying import LATER, applied, owners, thing, updated


def test_create_on_apply_claims_exactly_the_named_fields() -> None:
    obj = applied(None, thing({"a": "1", "ports": [{"port": 80}], "tags": ["x"]}, labels={"l": "1"}))
    assert obj["metadata"]["managedFields"] == [
        {
            "apiVersion": "x.io/v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {"f:l": {}}},
                "f:spec": {
                    "f:a": {},
                    "f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}},
                    "f:tags": {'v:"x"': {}},
                },
            },
            "manager": "a",
            "operation": "Apply",
            "time": "2026-01-02T03:04:05Z",
        }
    ]


def test_an_apply_that_changes_nothing_gives_back_the_live_object() -> None:
    config = thing({"a": "1", "ports": [{"port": 80, "name": "web"}]}, labels={"l": "1"})
    live = applied(None, config)
    assert applied(live, config, now=LATER) is live


def test_a_field_no_longer_applied_is_removed_and_one_shared_with_another_stays() -> None:
    live = applied(None, thing({"a": "1", "b": "1"}, labels={"l": "1", "m": "1"}))
    live = applied(live, thing({"b": "1"}), by="other")
    live = applied(live, thing({}), now=LATER)
    assert live["spec"] == {"b": "1"}
    assert "labels" not in live["metadata"]
    assert owners(live) == {("a", "Apply"): [".spec"], ("other", "Apply"): [".spec.b"]}


def test_a_conflict_names_the_manager_and_each_field() -> None:
    live = applied(None, thing({"a": "1", "ports": [{"port": 80, "name": "web"}], "tags": ["x"]}))
    with pytest.raises(ApplyConflict) as refused:
        applied(live, thing({"a": "2", "ports": [{"port": 80, "name": "www"}]}), by="other")
    assert [(cause.reason, cause.message, cause.field) for cause in refused.value.causes] == [
        ("FieldManagerConflict", 'conflict with "a"', ".spec.a"),
        ("FieldManagerConflict", 'conflict with "a"', '.spec.ports[port=80,protocol="TCP"].name'),
    ]


def test_a_conflict_with_an_updater_names_its_version_and_one_with_a_subresource_its_endpoint() -> None:
    live = updated(None, thing({"a": "1"}), by="Python")
    with pytest.raises(ApplyConflict) as refused:
        applied(live, thing({"a": "2"}))
    assert refused.value.causes[0].message == 'conflict with "Python" using x.io/v1'
    live = applied(live, thing(status={"phase": "On"}), by="s", subresource="status")
    with pytest.raises(ApplyConflict) as refused:
        applied(live, thing(status={"phase": "Off"}), subresource="status")
    assert refused.value.causes[0].message == 'conflict with "s" with subresource "status"'


def test_force_takes_the_field_over_and_equal_values_are_shared() -> None:
    live = applied(None, thing({"a": "1", "b": "1"}))
    live = applied(live, thing({"a": "2", "b": "1"}), by="other", force=True, now=LATER)
    assert live["spec"] == {"a": "2", "b": "1"}
    assert owners(live) == {("a", "Apply"): [".spec.b"], ("other", "Apply"): [".spec.a", ".spec.b"]}


def test_elements_of_a_keyed_list_come_and_go_with_their_manager() -> None:
    live = applied(None, thing({"ports": [{"port": 1, "name": "one"}, {"port": 2, "name": "two"}]}))
    live = applied(live, thing({"ports": [{"port": 3}]}), by="other")
    live = applied(live, thing({"ports": [{"port": 2, "name": "zwei"}]}))
    assert live["spec"]["ports"] == [{"port": 2, "name": "zwei"}, {"port": 3}]


def test_a_container_goes_with_its_last_owner_and_what_nobody_owns_in_it() -> None:
    live = applied(None, thing({"a": "1", "config": {"x": "1"}}))
    live = {**live, "spec": {**live["spec"], "replicas": 1}}
    assert "spec" not in applied(live, thing())
    live = applied(live, thing({"b": "1"}), by="other")
    assert applied(live, thing())["spec"] == {"b": "1", "replicas": 1}


def test_an_identity_alone_gives_up_everything_but_itself() -> None:
    live = applied(None, thing({"a": "1"}, labels={"l": "1"}, uid="u"))
    released = applied(live, thing(uid="u"))
    assert released == {**thing(uid="u"), "metadata": {"name": "t", "uid": "u", "managedFields": []}}


def test_a_container_that_loses_its_content_is_null_although_it_is_still_applied() -> None:
    live = applied(None, thing({"config": {"x": "1"}, "free": {"x": {"y": 1}}}))
    assert applied(live, thing({"config": {}, "free": {"x": {}}}))["spec"] == {"config": None, "free": {"x": None}}


def test_an_empty_keyed_list_claims_nothing() -> None:
    live = applied(None, thing({"ports": []}))
    assert live["metadata"]["managedFields"] == []


@pytest.mark.parametrize(
    ("live", "wanted", "merged"),
    [
        ([1, 2, 3], [2, 1], [2, 3, 1]),
        ([3, 2, 1], [1, 3], [2, 1, 3]),
        ([1, 2], [9, 2], [1, 9, 2]),
        ([1, 2], [2, 9], [1, 2, 9]),
        ([], [2, 1], [2, 1]),
    ],
)
def test_applied_elements_are_in_the_order_applied_and_others_keep_their_neighbours(
    live: list[int], wanted: list[int], merged: list[int]
) -> None:
    def ports(numbers: list[int]) -> dict[str, Any]:
        return thing({"ports": [{"port": number} for number in numbers]})

    result = applied(updated(None, ports(live)), ports(wanted))
    assert [item["port"] for item in result["spec"]["ports"]] == merged


def test_an_element_goes_although_another_manager_owns_a_field_inside_it() -> None:
    live = applied(None, thing({"ports": [{"port": 1}, {"port": 2}]}))
    changed = copy.deepcopy(live)
    changed["spec"]["ports"][0]["name"] = "set by an update"
    live = updated(live, changed)
    live = applied(live, thing({"ports": [{"port": 2}]}))
    assert live["spec"]["ports"] == [{"port": 2}]
    assert ("u", "Update") not in owners(live)


def test_elements_of_a_set_are_owned_one_by_one_and_an_atomic_list_whole() -> None:
    live = applied(None, thing({"tags": ["x", "y"], "list": ["x"]}))
    live = applied(live, thing({"tags": ["y", "z"]}), by="other")
    assert live["spec"]["tags"] == ["x", "y", "z"]
    live = applied(live, thing({"list": ["x", "w"]}))
    assert live["spec"] == {"tags": ["y", "z"], "list": ["x", "w"]}
    with pytest.raises(ApplyConflict) as refused:
        applied(live, thing({"list": ["x"]}), by="other")
    assert [cause.field for cause in refused.value.causes] == [".spec.list"]


def test_an_atomic_map_is_replaced_whole_and_a_granular_one_merges() -> None:
    live = applied(None, thing({"selector": {"a": "1"}, "config": {"a": "1"}}))
    live = applied(live, thing({"selector": {"b": "1"}, "config": {"b": "1"}}), by="other", force=True)
    assert live["spec"] == {"selector": {"b": "1"}, "config": {"a": "1", "b": "1"}}
    assert owners(live) == {
        ("a", "Apply"): [".spec.config.a"],
        ("other", "Apply"): [".spec.config.b", ".spec.selector"],
    }


def test_preserved_content_is_granular_maps_and_atomic_lists() -> None:
    live = applied(None, thing({"free": {"x": {"y": 1}, "l": [{"name": "a"}]}}))
    assert owners(live)["a", "Apply"] == [".spec.free.l", ".spec.free.x", ".spec.free.x.y"]


def test_status_and_main_object_are_separate_claims_of_one_manager() -> None:
    live = applied(None, thing({"a": "1"}))
    live = applied(live, thing(status={"phase": "On"}), subresource="status")
    live = applied(live, thing({"a": "2"}), now=LATER)
    assert (live["spec"], live["status"]) == ({"a": "2"}, {"phase": "On"})
    assert owners(live) == {("a", "Apply"): [".spec.a"], ("a", "Apply:status"): [".status.phase"]}


def test_identity_and_server_set_metadata_are_nobodys() -> None:
    config = thing({"a": "1"}, uid="u", resourceVersion="3", creationTimestamp=None, finalizers=["f"])
    live = {**config, "metadata": {**config["metadata"], "creationTimestamp": "2026-01-01T00:00:00Z"}}
    live = updated(None, live)
    result = applied(live, config)
    assert owners(result)["a", "Apply"] == ['.metadata.finalizers[="f"]', ".spec.a"]
    assert owners(live)["u", "Update"] == [".metadata.finalizers", '.metadata.finalizers[="f"]', ".spec", ".spec.a"]


def test_an_object_that_nobody_claims_was_there_before_the_first_apply() -> None:
    live = thing({"a": "1"}, labels={"l": "1"})
    with pytest.raises(ApplyConflict) as refused:
        applied(live, thing({"a": "2"}))
    assert refused.value.causes[0].message == 'conflict with "before-first-apply" using x.io/v1'
    assert ("before-first-apply", "Update") in owners(applied(live, thing({"a": "1"})))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"unknown": 1}, r"\.spec\.unknown: field not declared in schema"),
        ({"things": [{"name": "x"}]}, r'\.spec\.things: element 0: .* omits all key fields \["id"\]'),
        ({"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}, r"\.spec\.ports: duplicate entries"),
        ({"ports": ["x"]}, r"may not have non-map elements"),
        ({"tags": ["x", "x"]}, r"\.spec\.tags: duplicate entries"),
    ],
    ids=["unknown field", "no key", "duplicate keys", "no map", "duplicates in a set"],
)
def test_a_configuration_that_the_schema_does_not_know_is_refused(spec: Any, words: str) -> None:
    with pytest.raises(ApplyError, match=words):
        applied(None, thing(spec))


ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"


def test_kubectl_goes_from_client_side_to_server_side_apply_without_conflict() -> None:
    config = thing({"a": "1", "b": "1"}, annotations={})
    annotated = thing({"a": "1", "b": "1"}, annotations={ANNOTATION: orjson.dumps(config).decode()})
    live = updated(None, annotated, by="kubectl-client-side-apply")
    with pytest.raises(ApplyConflict):
        applied(live, thing({"a": "2", "b": "1"}), by="other")
    live = applied(live, thing({"a": "2", "b": "1"}), by="kubectl")
    assert live["spec"] == {"a": "2", "b": "1"}
    kept = orjson.loads(live["metadata"]["annotations"][ANNOTATION])
    assert kept == thing({"a": "2", "b": "1"})
    assert applied(live, thing({"a": "2", "b": "1"}), by="kubectl", now=LATER) is live


def test_kubectl_does_conflict_over_a_field_that_somebody_changed_since() -> None:
    config = thing({"a": "1", "b": "1"})
    annotated = thing({"a": "1", "b": "1"}, annotations={ANNOTATION: orjson.dumps(config).decode()})
    live = updated(None, annotated, by="kubectl-client-side-apply")
    live = updated(live, {**live, "spec": {"a": "9", "b": "1"}})
    with pytest.raises(ApplyConflict) as refused:
        applied(live, thing({"a": "2", "b": "2"}), by="kubectl")
    assert [cause.field for cause in refused.value.causes] == [".spec.a"]


@pytest.mark.parametrize("text", ["{", "[]", '{"apiVersion":"x.io/v0"}', '{"apiVersion":"x.io/v1","spec":{"no":1}}'])
def test_an_annotation_that_proves_nothing_allows_nothing(text: str) -> None:
    live = updated(None, thing({"a": "1"}, annotations={ANNOTATION: text}))
    with pytest.raises(ApplyConflict):
        applied(live, thing({"a": "2"}), by="kubectl")


def test_all_that_is_wrong_with_a_configuration_is_said_at_once() -> None:
    with pytest.raises(ApplyError) as refused:
        applied(None, thing({"unknown": 1, "ports": [{"port": 1, "x": 1}]}))
    assert refused.value.message == (
        "failed to create typed patch object (/t; x.io/v1, Kind=Thing): errors:\n"
        '  .spec.ports[port=1,protocol="TCP"].x: field not declared in schema\n'
        "  .spec.unknown: field not declared in schema"
    )


def test_applied_managed_fields_are_refused() -> None:
    with pytest.raises(ApplyError, match="must be nil") as refused:
        applied(None, thing({}, managedFields=[{"manager": "a"}]))
    assert refused.value.code == 400


port: st.SearchStrategy[Any] = st.builds(
    lambda number, name: {"port": number} | ({"name": name} if name else {}),
    st.integers(1, 3),
    st.sampled_from(["", "x", "y"]),
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "a": st.sampled_from("12"),
        "list": st.lists(st.sampled_from("xy"), max_size=2),
        "tags": st.lists(st.sampled_from("xyz"), unique=True, max_size=3),
        "ports": st.lists(port, unique_by=lambda item: item["port"], max_size=3),
        "selector": st.dictionaries(st.sampled_from("xy"), st.sampled_from("12"), max_size=2),
        "config": st.dictionaries(st.sampled_from("xy"), st.sampled_from("12"), max_size=2),
        "free": st.dictionaries(
            st.sampled_from("xy"), st.dictionaries(st.just("z"), st.integers(0, 1), min_size=1), max_size=2
        ),
    },
)


@given(specs, specs, specs)
@settings(max_examples=80, deadline=None)
def test_applying_twice_is_a_no_op_whatever_others_applied_and_wrote(first: Any, second: Any, third: Any) -> None:
    live = applied(None, thing(first))
    live = applied(live, thing(second), by="b", force=True)
    live = updated(live, {**live, "spec": {**live.get("spec", {}), **third}})
    once = applied(live, thing(second), by="b", force=True, now=LATER)
    assert applied(once, thing(second), by="b", force=True, now=LATER + timedelta(minutes=1)) is once


@given(specs, specs)
@settings(max_examples=80, deadline=None)
def test_a_sole_manager_ends_with_what_it_applied_last(first: Any, second: Any) -> None:
    live = applied(applied(None, thing(first)), thing(second))
    wanted = {key: value for key, value in second.items() if value}
    assert {key: value for key, value in (live.get("spec") or {}).items() if value} == _by_key(wanted, live)


def _by_key(spec: Any, live: Any) -> Any:
    """The order of elements that were there before is kept, so compare lists in the order of the result."""
    result = dict(spec)
    for key in ("tags", "ports"):
        if key in result:
            order = live["spec"][key]
            assert sorted(map(repr, order)) == sorted(map(repr, result[key]))
            result[key] = order
    return result
