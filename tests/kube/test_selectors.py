"""Guessing what a server selects."""

from __future__ import annotations

import pytest

from kardinal.kube.selectors import matches

OBJECT = {
    "metadata": {"name": "a", "namespace": "x", "labels": {"app": "web", "tier": "front"}},
    "spec": {"node": "n1"},
}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, True),
        ("", True),
        ("app=web", True),
        ("app == web", True),
        ("app=api", False),
        ("app!=api", True),
        ("missing!=x", True),
        ("missing=", False),
        ("app", True),
        ("missing", False),
        ("!missing", True),
        ("! app", False),
        ("app in (web, api)", True),
        ("app in (api)", False),
        ("app notin (api,db)", True),
        ("missing notin (a)", True),
        ("app notin (web)", False),
        ("app in (web,api),tier=front", True),
        ("app in (web,api),tier!=front", False),
    ],
)
def test_label_selectors(selector: str | None, expected: bool) -> None:
    assert matches(OBJECT, labels=selector) is expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("metadata.name=a", True),
        ("metadata.name!=a", False),
        ("metadata.namespace=x,spec.node=n1", True),
        ("spec.node.deeper=x", False),
        ("status.phase=", True),
        ("nonsense", False),
    ],
)
def test_field_selectors(selector: str, expected: bool) -> None:
    assert matches(OBJECT, fields=selector) is expected


def test_an_object_without_labels_matches_only_what_asks_for_none() -> None:
    bare = {"metadata": {"name": "a"}}
    assert matches(bare, labels="!app")
    assert not matches(bare, labels="app=web")
