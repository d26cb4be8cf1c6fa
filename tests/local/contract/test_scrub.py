"""Scrubbing renames, and renaming keeps what is equal equal and what is different different."""

from __future__ import annotations

from typing import Any

from tests.local.contract.scrub import scrub, timestamps

ONE = "11111111-2222-3333-4444-555555555555"
TWO = "99999999-2222-3333-4444-555555555555"


def clean(*documents: Any, names: dict[str, str] | None = None, constants: frozenset[str] = frozenset()) -> list[Any]:
    return scrub(documents, names=names or {}, constants=constants)


def test_uids_are_numbered_as_they_are_seen_wherever_they_are() -> None:
    assert clean({"uid": TWO}, {"message": f"no {ONE}, but {TWO}"}, {f'k:{{"uid":"{ONE}"}}': {}}) == [
        {"uid": "id-1"},
        {"message": "no id-2, but id-1"},
        {'k:{"uid":"id-2"}': {}},
    ]


def test_the_order_of_keys_does_not_matter() -> None:
    assert clean({"a": ONE, "b": TWO}) == clean({"b": TWO, "a": ONE}) == [{"a": "id-1", "b": "id-2"}]


def test_a_generated_name_is_renamed_everywhere_and_its_prefix_alone_nowhere() -> None:
    made = {"generateName": "job-", "name": "job-x7k2p"}
    assert clean(made, {"message": 'pods "job-x7k2p" of "job-"'}) == [
        {"generateName": "job-", "name": "id-1"},
        {"message": 'pods "id-1" of "job-"'},
    ]


def test_names_of_the_run_get_the_names_they_are_given() -> None:
    names = {"contract-3f9": "namespace-1", "contract-3f9-2": "namespace-2"}
    assert clean("/api/v1/namespaces/contract-3f9-2/pods of contract-3f9", names=names) == [
        "/api/v1/namespaces/namespace-2/pods of namespace-1"
    ]


def _object(revision: str) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": revision}}


def _ranks(cleaned: list[Any]) -> list[str]:
    return [document["metadata"]["resourceVersion"] for document in cleaned]


def test_revisions_become_ranks_in_which_equality_and_order_count() -> None:
    assert _ranks(clean(*map(_object, ["9", "1000", "9", "11"]))) == ["rv-1", "rv-3", "rv-1", "rv-2"]


def test_zero_and_nonsense_are_no_revisions() -> None:
    assert _ranks(clean(*map(_object, ["0", "", "abc"]))) == ["0", "", "abc"]


def test_the_revision_of_a_list_or_bookmark_is_the_newest_object_it_includes() -> None:
    many = {"kind": "ConfigMapList"} | _object("15")
    table = {"kind": "Table"} | _object("9")
    bookmark = {"type": "BOOKMARK", "object": _object("99")}
    cleaned = clean(_object("10"), many, table, bookmark, _object("20"), {"request": "GET /x?resourceVersion=12"})
    assert _ranks([*cleaned[:3], cleaned[3]["object"], cleaned[4]]) == ["rv-1", "rv-1", "rv-0", "rv-2", "rv-2"]
    assert cleaned[5] == {"request": "GET /x?resourceVersion=rv-1"}


def test_revisions_in_a_message_are_ranked_and_other_numbers_are_not() -> None:
    message = "Too large resource version: 30, current: 20; must have at most 20 items"
    assert clean(_object("20"), {"message": message})[1] == {
        "message": "Too large resource version: rv-1, current: rv-1; must have at most 20 items"
    }


def test_moments_keep_their_type_and_those_the_test_sent_are_kept() -> None:
    document = ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000001Z", "2020-01-01T00:00:00Z"]
    assert clean(document, constants=frozenset({"2020-01-01T00:00:00Z"})) == [["T", "T.micro", "2020-01-01T00:00:00Z"]]
    assert timestamps(str(document)) == set(document)


def test_ages_are_renamed_in_the_cells_of_a_table_only() -> None:
    assert clean({"rows": [{"cells": ["a", "3m4s", 3]}], "note": "3m4s"}) == [
        {"rows": [{"cells": ["a", "T", 3]}], "note": "3m4s"}
    ]


def test_continue_tokens_and_credentials_are_renamed() -> None:
    assert clean(
        {"continue": "abc", "request": "GET /x?limit=1&continue=abc"}, {"continue": "", "token": "s3cret"}
    ) == [
        {"continue": "C", "request": "GET /x?limit=1&continue=C"},
        {"continue": "", "token": "id-1"},
    ]
    assert clean("Bearer eyJhbGci.eyJpc3Mi.c2ln") == ["Bearer id-1"]
