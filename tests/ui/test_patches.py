"""Merge patches between documents, and how live documents keep them."""

from __future__ import annotations

import gzip
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kardinal_controller.ui.frames import HEARTBEAT, Packing, StreamEvent, event
from kardinal_controller.ui.live import KEPT, PART, LiveDocument, LiveOverview, Numbers
from kardinal_controller.ui.patches import difference
from tests.ui.reading import applied, read_events

LEAVES = st.one_of(st.booleans(), st.integers(-9, 9), st.text(max_size=3), st.lists(st.integers(0, 3), max_size=3))
VALUES = st.recursive(LEAVES, lambda inner: st.dictionaries(st.text("abc", max_size=2), inner, max_size=4))
DOCUMENTS = st.dictionaries(st.text("abc", max_size=2), VALUES, max_size=5)

Json = dict[str, Any]


@settings(max_examples=50)
@given(DOCUMENTS, DOCUMENTS)
def test_patch_makes_the_new_document_of_the_old_one(old: Json, new: Json) -> None:
    patch = difference(old, new)

    assert orjson.dumps(applied(old, patch), option=orjson.OPT_SORT_KEYS) == orjson.dumps(
        new, option=orjson.OPT_SORT_KEYS
    )
    # Twice is as once: a snapshot may have the change already.
    assert applied(applied(old, patch), patch) == new


@settings(max_examples=20)
@given(DOCUMENTS)
def test_patch_between_equal_documents_is_empty(document: Json) -> None:
    assert difference(document, orjson.loads(orjson.dumps(document))) == {}


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, {"a": {"c": 3}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": None}}),
        ({"a": [1, 2]}, {"a": [1]}, {"a": [1]}),
        ({"a": 1}, {}, {"a": None}),
        ({"a": 1}, {"a": True}, {"a": True}),
    ],
)
def test_patch_has_only_what_has_changed(old: Json, new: Json, patch: Json) -> None:
    assert repr(difference(old, new)) == repr(patch)


@settings(max_examples=25)
@given(st.lists(DOCUMENTS, min_size=2, max_size=12), st.data())
def test_reader_of_a_live_document_ends_with_its_last_state(states: list[Json], data: st.DataObject) -> None:
    live = LiveDocument(Numbers("r"))
    live.put(states[0])
    position = 0
    seen: Json = {}
    for state in states:
        live.put(state)
        if data.draw(st.booleans()):
            frames = live.after(position)
            if frames is None:
                frames = list(live.snapshot().frames)
            seen = read_events(b"".join(frame.plain for frame in frames), seen)
            position = live.number
            assert seen == state


def test_reader_that_is_too_far_behind_gets_no_patches() -> None:
    live = LiveDocument(Numbers("r"))
    live.put({"n": 0})
    first = live.number
    for number in range(1, KEPT + 1):
        live.put({"n": number})
    assert len(live.after(first) or ()) == KEPT

    live.put({"n": -1})

    assert live.after(first) is None
    assert live.after(10_000) is None


def test_change_that_changes_nothing_is_no_patch() -> None:
    live = LiveDocument(Numbers("r"))
    live.put({"n": 1})
    before = live.number

    live.put({"n": 1})

    assert live.number == before


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("ab"), st.none() | DOCUMENTS), max_size=20),
    st.data(),
)
async def test_viewers_of_the_overview_get_their_namespaces_and_no_others(
    changes: list[tuple[str, str, Json | None]], data: st.DataObject
) -> None:
    rows: Json = {}

    def notices(namespaces: frozenset[str]) -> Json:
        found = [key for key, row in rows.items() if key[0] in namespaces and "a" in row]
        return {"a": {"rows": found}} if found else {}

    live = LiveOverview(Numbers("r"), notices)
    namespaces = frozenset("xy")
    seen = read_events(b"".join(frame.plain for frame in (await live.snapshot(namespaces)).frames), {})
    position = live.number
    for namespace, name, content in changes:
        key = f"{namespace}/{name}"
        live.put(namespace, key, content)
        rows.pop(key, None)
        if content is not None:
            rows[key] = content
        if data.draw(st.booleans()):
            live.publish()
            frames = live.after(position, namespaces)
            assert frames is not None
            seen = read_events(b"".join(frame.plain for frame in frames), seen)
            position = live.number
            shown = {key: row for key, row in rows.items() if key[0] in namespaces}
            assert seen == {"rows": shown, "notices": notices(namespaces)}
            assert read_events(b"".join(each.plain for each in (await live.snapshot(namespaces)).frames), {}) == seen


async def test_snapshot_of_the_overview_comes_in_parts() -> None:
    live = LiveOverview(Numbers("r"), lambda _: {})
    for number in range(PART + 1):
        live.put("x", f"x/{number}", {"n": number})
    live.publish()

    snapshot = await live.snapshot(frozenset("x"))

    assert [frame.plain.split(b"\n")[0] for frame in snapshot.frames] == [
        b"event: snapshot",
        b"event: snapshot",
        b"event: complete",
    ]
    assert snapshot.frames[-1].plain.split(b"\n")[1] == f"id: r-{live.number}".encode()
    assert await live.snapshot(frozenset("x")) is snapshot


@settings(max_examples=25)
@given(st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=50), max_size=5), min_size=1, max_size=5))
def test_compressed_stream_is_one_gzip_member(contents: list[Json]) -> None:
    frames = [*(event("patch", content, identifier="r-1") for content in contents), HEARTBEAT, StreamEvent(b"")]
    packing = Packing()

    sent = b"".join(packing.take(frame) for frame in frames) + packing.end()

    assert gzip.decompress(sent) == b"".join(frame.plain for frame in frames)


def test_id_of_another_process_is_no_position() -> None:
    numbers = Numbers("7f3c")

    assert numbers.parse(numbers.identifier(numbers.next())) == 1
    assert [numbers.parse(text) for text in ("8a1b-1", "7f3c-", "7f3c-x", "7f3c-²", "", "1")] == [None] * 6
