"""Lists: selectors, pieces, revisions and representations."""

from __future__ import annotations

import pytest

from tests.localplane.wire import CONFIG_MAPS, Http, config_map, widget

PARTIAL = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def names(body: dict[str, list[dict[str, dict[str, str]]]]) -> list[str]:
    return [item["metadata"]["name"] for item in body["items"]]


async def fill(http: Http, *, count: int = 5) -> None:
    for number in range(count):
        parity = "even" if number % 2 == 0 else "odd"
        await http.post(CONFIG_MAPS, config_map(f"m{number}", labels={"parity": parity, "number": str(number)}))


async def test_items_come_in_the_order_of_their_keys(http: Http) -> None:
    for name in ("b", "c", "a"):
        await http.post(CONFIG_MAPS, config_map(name))
    await http.post("/api/v1/namespaces/kube-system/configmaps", config_map("0"))
    assert names((await http.get(CONFIG_MAPS)).body) == ["a", "b", "c"]
    everywhere = await http.get("/api/v1/configmaps")
    assert names(everywhere.body) == ["a", "b", "c", "0"]
    assert everywhere.body["kind"] == "ConfigMapList"


async def test_only_items_of_custom_kinds_say_their_kind(http: Http, widgets: str) -> None:
    await http.post(CONFIG_MAPS, config_map("a") | {"data": {"a": "1"}})
    await http.post(widgets, widget("a"))
    assert set((await http.get(CONFIG_MAPS)).body["items"][0]) == {"metadata", "data"}
    (item,) = (await http.get(widgets)).body["items"]
    assert (item["apiVersion"], item["kind"]) == ("example.com/v1", "Widget")


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("parity=even", ["m0", "m2", "m4"]),
        ("parity==odd", ["m1", "m3"]),
        ("parity!=odd", ["m0", "m2", "m4"]),
        ("number in (1, 2),parity=odd", ["m1"]),
        ("number notin (1,2,3)", ["m0", "m4"]),
        ("parity", ["m0", "m1", "m2", "m3", "m4"]),
        ("!parity", []),
        ("missing!=x", ["m0", "m1", "m2", "m3", "m4"]),
        ("number>2", ["m3", "m4"]),
        ("number<1", ["m0"]),
    ],
)
async def test_labels_select(http: Http, selector: str, found: list[str]) -> None:
    await fill(http)
    assert names((await http.get(CONFIG_MAPS, labelSelector=selector)).body) == found


@pytest.mark.parametrize("selector", ["=", "a in b", "a b", "(a)"])
async def test_a_label_selector_that_cannot_be_read_is_refused(http: Http, selector: str) -> None:
    assert (await http.get(CONFIG_MAPS, labelSelector=selector)).status == 400


async def test_fields_select_by_name_and_namespace(http: Http) -> None:
    await fill(http)
    assert names((await http.get(CONFIG_MAPS, fieldSelector="metadata.name=m1")).body) == ["m1"]
    assert names((await http.get(CONFIG_MAPS, fieldSelector="metadata.name!=m1")).body) == ["m0", "m2", "m3", "m4"]
    assert names((await http.get(CONFIG_MAPS, fieldSelector="metadata.name=none")).body) == []
    everywhere = await http.get("/api/v1/configmaps", fieldSelector="metadata.namespace=kube-system")
    assert names(everywhere.body) == []


async def test_a_list_in_pieces_is_one_list(http: Http) -> None:
    await fill(http)
    first = await http.get(CONFIG_MAPS, limit=2)
    assert first.body["metadata"]["remainingItemCount"] == 3
    await http.delete(f"{CONFIG_MAPS}/m3")
    await http.post(CONFIG_MAPS, config_map("m9"))
    second = await http.get(CONFIG_MAPS, limit=2, **{"continue": first.body["metadata"]["continue"]})
    third = await http.get(CONFIG_MAPS, limit=2, **{"continue": second.body["metadata"]["continue"]})
    assert names(first.body) + names(second.body) + names(third.body) == ["m0", "m1", "m2", "m3", "m4"]
    assert first.revision == second.revision == third.revision
    assert "continue" not in third.body["metadata"]


async def test_a_continue_token_that_nobody_gave_is_refused(http: Http) -> None:
    assert (await http.get(CONFIG_MAPS, limit=2, **{"continue": "abc"})).status == 400


async def test_a_revision_that_does_not_exist_yet_times_out(http: Http) -> None:
    late = await http.get(CONFIG_MAPS, resourceVersion="99999999")
    assert (late.status, late.body["reason"]) == (504, "Timeout")
    assert late.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert late.headers["Retry-After"] == "1"


async def test_metadata_alone_can_be_listed(http: Http, widgets: str) -> None:
    await http.post(widgets, widget("a"))
    found = await http("GET", widgets, headers={"Accept": PARTIAL})
    assert found.body["kind"] == "PartialObjectMetadataList"
    assert set(found.body["items"][0]) == {"kind", "apiVersion", "metadata"}


async def test_a_table_has_the_columns_of_its_definition(http: Http, widgets: str) -> None:
    await http.post(widgets, widget("a", size=7))
    found = await http("GET", widgets, headers={"Accept": TABLE})
    assert found.body["kind"] == "Table"
    assert [column["name"] for column in found.body["columnDefinitions"]] == ["Name", "Size"]
    (row,) = found.body["rows"]
    assert row["cells"] == ["a", 7]
    assert row["object"]["kind"] == "PartialObjectMetadata"


async def test_a_table_of_many_portions_has_every_row_once(http: Http) -> None:
    for number in range(450):
        await http.post(CONFIG_MAPS, config_map(f"m{number:03}"))
    found = await http("GET", CONFIG_MAPS, headers={"Accept": TABLE})
    assert [row["cells"][0] for row in found.body["rows"]] == [f"m{number:03}" for number in range(450)]
    assert names((await http.get(CONFIG_MAPS)).body) == [f"m{number:03}" for number in range(450)]


async def test_what_nobody_can_render_is_not_acceptable(http: Http) -> None:
    refused = await http("GET", CONFIG_MAPS, headers={"Accept": "application/vnd.kubernetes.protobuf"})
    assert refused.status == 406
    preferred = await http(
        "GET", CONFIG_MAPS, headers={"Accept": "application/vnd.kubernetes.protobuf,application/json"}
    )
    assert preferred.status == 200


async def test_a_list_of_megabytes_arrives_whole(http: Http) -> None:
    for number in range(5):
        await http.post(CONFIG_MAPS, config_map(f"m{number}", key="x" * 500_000))
    assert len((await http.get(CONFIG_MAPS)).body["items"]) == 5
