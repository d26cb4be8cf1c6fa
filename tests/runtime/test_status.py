"""Writing status: only what differs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kardinal.kube import Client
from kardinal.runtime import StatusWriter
from kardinal.runtime.status import merge_patch
from tests.runtime.apiserver import WIDGET, WidgetServer

values = st.recursive(
    st.booleans() | st.integers(0, 3) | st.sampled_from("abc"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(st.sampled_from("xyz"), values, max_size=3)


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386, as a server applies it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


@settings(deadline=None, database=None)
@given(documents, documents)
def test_a_patch_leads_from_the_old_to_the_new_document(old: dict[str, Any], new: dict[str, Any]) -> None:
    patch = merge_patch(old, new)
    assert merged(old, patch) == new
    assert (patch == {}) == (old == new)


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ({"a": 1, "b": {"c": 1, "d": 2}}, {"a": 1, "b": {"c": 1, "d": 3}}, {"b": {"d": 3}}),
        ({"a": [1, 2]}, {"a": [1, 3]}, {"a": [1, 3]}),
        ({"a": 1}, {}, {"a": None}),
        ({"a": 1}, {"a": None}, {"a": None}),
        ({"a": None}, {}, {}),
        ({}, {"a": None}, {}),
        ({"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    ],
)
def test_a_patch_names_only_what_differs(old: dict[str, Any], new: dict[str, Any], patch: dict[str, Any]) -> None:
    assert merge_patch(old, new) == patch


async def test_an_equal_status_is_no_request(server: WidgetServer, client: Client) -> None:
    current = await server.put("a", status={"phase": "Ready", "conditions": [{"type": "Ready"}]})
    wanted = {"phase": "Ready", "conditions": [{"type": "Ready"}], "message": None}
    assert await StatusWriter(client).write(WIDGET, current, wanted) is None
    assert server.requests == []


async def test_a_different_status_is_one_patch_of_this_incarnation(server: WidgetServer, client: Client) -> None:
    current = await server.put("a", status={"phase": "Pending"})
    written = await StatusWriter(client).write(WIDGET, current, {"phase": "Ready"})
    assert written is not None
    ((verb, path, body),) = server.writes
    assert (verb, path) == ("patch", "/apis/example.com/v1/namespaces/default/widgets/a/status")
    assert body == {"status": {"phase": "Ready"}, "metadata": {"uid": current["metadata"]["uid"]}}
