"""Printer columns, ages and Table objects."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kardinal_local.plane.tables.builtin import builtin_columns
from kardinal_local.plane.tables.columns import age, custom_columns, table

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CREATED = "2026-01-02T03:00:00Z"

BUNDLE: dict[str, Any] = {
    "apiVersion": "kardinal.io/v1alpha1",
    "kind": "Bundle",
    "metadata": {
        "name": "b",
        "creationTimestamp": CREATED,
        "labels": {"kardinal.io/shard": "eu"},
        "annotations": {"a.b": "dotted"},
    },
    "spec": {"n": 3, "ratio": 0.5, "on": True, "images": [{"tag": "v1"}, {"tag": "v2"}], "empty": None},
    "status": {
        "phase": "Verified",
        "conditions": [
            {"type": "Stalled", "status": "False", "count": 1},
            {"type": "Ready", "status": "True", "reason": "Done", "count": 2},
        ],
    },
}


def cell(path: str, kind: str = "string") -> Any:
    [_, column] = custom_columns([{"name": "X", "type": kind, "jsonPath": path}])
    return column.cell(BUNDLE, NOW)


@pytest.mark.parametrize(
    ("path", "kind", "shown"),
    [
        (".status.phase", "string", "Verified"),
        ("{.status.phase}", "string", "Verified"),
        (".spec.n", "integer", 3),
        (".spec.n", "string", "3"),
        (".spec.ratio", "number", 0.5),
        (".spec.on", "boolean", True),
        (".spec.on", "string", "true"),
        (".spec.on", "integer", None),
        (".spec.missing.deeper", "string", None),
        (".spec.empty", "string", "<no value>"),
        (".metadata.labels['kardinal\\.io/shard']", "string", "eu"),
        (".metadata.labels['kardinal.io/shard']", "string", None),
        (r".metadata.annotations.a\.b", "string", "dotted"),
        (".spec.images[0].tag", "string", "v1"),
        (".spec.images[-1].tag", "string", "v2"),
        (".spec.images[5].tag", "string", None),
        (".spec.images[1:].tag", "string", "v2"),
        (".spec.images[*].tag", "string", "v1"),
        (".spec.images", "string", '[{"tag":"v1"},{"tag":"v2"}]'),
        ('.status.conditions[?(@.type=="Ready")].status', "string", "True"),
        (".status.conditions[?(@.type=='Ready')].reason", "string", "Done"),
        ('.status.conditions[?(@.type != "Ready")].status', "string", "False"),
        (".status.conditions[?(@.count==2)].type", "string", "Ready"),
        (".status.conditions[?(@.reason)].type", "string", "Ready"),
        ('.status.conditions[?(@.type=="Gone")].status', "string", None),
        (".metadata.creationTimestamp", "date", "4m5s"),
        (".status.phase", "date", "<invalid>"),
    ],
)
def test_a_cell_shows_the_first_value_at_its_path(path: str, kind: str, shown: Any) -> None:
    assert cell(path, kind) == shown


def test_the_name_comes_first_and_without_columns_of_its_own_a_kind_shows_its_age() -> None:
    columns = custom_columns([])
    assert [(column.name, column.cell(BUNDLE, NOW)) for column in columns] == [("Name", "b"), ("Age", "4m5s")]
    own = custom_columns([{"name": "Phase", "type": "string", "jsonPath": ".status.phase", "priority": 1}])
    assert [(column.name, column.priority) for column in own] == [("Name", 0), ("Phase", 1)]


def test_columns_that_cannot_be_read_give_way_to_the_age() -> None:
    columns = custom_columns([{"name": "X", "type": "string", "jsonPath": ".a[?(@.x<3)]"}])
    assert [column.name for column in columns] == ["Name", "Age"]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (119, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (47 * 3600, "47h"),
        (50 * 3600, "2d2h"),
        (9 * 86400, "9d"),
        (2 * 365 * 86400, "2y"),
        (3 * 365 * 86400 + 86400, "3y1d"),
        (9 * 365 * 86400 + 86400, "9y"),
    ],
)
def test_an_age_is_shown_shorter_the_longer_it_is(seconds: int, shown: str) -> None:
    assert age((NOW - timedelta(seconds=seconds)).isoformat(), NOW) == shown


def test_a_missing_time_has_an_unknown_age() -> None:
    assert age(None, NOW) == "<unknown>"


def row(group: str, obj: dict[str, Any]) -> dict[str, Any]:
    obj = {**obj, "metadata": {"name": "x", "creationTimestamp": CREATED, **obj.get("metadata", {})}}
    return {column.name: column.cell(obj, NOW) for column in builtin_columns(group, obj["kind"])}


def test_built_in_kinds_show_the_columns_of_the_real_server() -> None:
    assert row("", {"kind": "Namespace", "status": {"phase": "Terminating"}}) == {
        "Name": "x",
        "Status": "Terminating",
        "Age": "4m5s",
    }
    assert row("", {"kind": "Secret", "type": "Opaque", "data": {"a": "", "b": ""}})["Data"] == 2
    assert row("", {"kind": "ConfigMap", "data": {"a": ""}, "binaryData": {"b": ""}})["Data"] == 2
    assert row("coordination.k8s.io", {"kind": "Lease", "spec": {"holderIdentity": "me"}})["Holder"] == "me"
    assert row("apiextensions.k8s.io", {"kind": "CustomResourceDefinition"}) == {"Name": "x", "Created At": CREATED}
    assert (
        row("", {"kind": "Service", "spec": {"type": "ClusterIP", "ports": [{"port": 80, "protocol": "TCP"}]}})[
            "Port(s)"
        ]
        == "80/TCP"
    )
    assert (
        row("rbac.authorization.k8s.io", {"kind": "RoleBinding", "roleRef": {"kind": "Role", "name": "r"}})["Role"]
        == "Role/r"
    )
    assert row("", {"kind": "ServiceAccount"}) == {"Name": "x", "Age": "4m5s"}


def test_a_deployment_shows_its_rollout_and_with_wide_its_images() -> None:
    deployment = {
        "kind": "Deployment",
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]}},
        },
        "status": {"readyReplicas": 1, "updatedReplicas": 2},
    }
    shown = row("apps", deployment)
    assert (shown["Ready"], shown["Up-to-date"], shown["Available"], shown["Images"]) == ("1/3", 2, 0, "a:1,b:1")
    assert shown["Selector"] == "app=web"
    assert [column.name for column in builtin_columns("apps", "Deployment") if column.priority] == [
        "Containers",
        "Images",
        "Selector",
    ]


@pytest.mark.parametrize(
    ("group", "event"),
    [
        (
            "",
            {
                "involvedObject": {"kind": "Bundle", "name": "b"},
                "message": "done\n",
                "lastTimestamp": CREATED,
                "count": 4,
                "source": {"component": "kardinal"},
            },
        ),
        (
            "events.k8s.io",
            {
                "regarding": {"kind": "Bundle", "name": "b"},
                "note": "done",
                "eventTime": "2026-01-01T00:00:00.000000Z",
                "series": {"count": 4, "lastObservedTime": "2026-01-02T03:00:00.000000Z"},
                "reportingController": "kardinal",
            },
        ),
    ],
    ids=["core", "events.k8s.io"],
)
def test_an_event_looks_the_same_in_both_its_groups(group: str, event: dict[str, Any]) -> None:
    shown = row(group, {"kind": "Event", "type": "Normal", "reason": "Verified", **event})
    assert [shown[name] for name in ("Last Seen", "Type", "Reason", "Object", "Message", "Count", "Source")] == [
        "4m5s",
        "Normal",
        "Verified",
        "bundle/b",
        "done",
        4,
        "kardinal",
    ]


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        ("Metadata", {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": BUNDLE["metadata"]}),
        ("Object", BUNDLE),
        ("None", None),
    ],
)
def test_a_table_carries_cells_and_as_much_of_the_object_as_asked(include: str, expected: Any) -> None:
    made = table(
        [BUNDLE],
        custom_columns([]),
        metadata={"resourceVersion": "7"},
        include_object=include,
        headers=True,
        version="v1",
        now=NOW,
    )
    assert made["apiVersion"] == "meta.k8s.io/v1"
    assert made["metadata"] == {"resourceVersion": "7"}
    assert [definition["name"] for definition in made["columnDefinitions"]] == ["Name", "Age"]
    assert made["rows"] == [{"cells": ["b", "4m5s"], "object": expected}]


def test_a_later_event_of_a_watch_has_no_headers() -> None:
    made = table([], (), metadata={}, include_object="None", headers=False, version="v1", now=NOW)
    assert made["columnDefinitions"] is None
