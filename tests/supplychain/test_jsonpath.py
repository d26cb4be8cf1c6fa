"""JSONPath in the dialect of client-go: what paths find, and what they cost."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal_supplychain.jsonpath import STEPS, NoResult, PathError, parse_path

POD: dict[str, Any] = {
    "metadata": {"name": "web", "labels": {"app.kubernetes.io/name": "shop", "x-y": "1"}, "annotations": None},
    "spec": {"containers": [{"name": "a", "port": 1}, {"name": "b", "port": 2}, {"name": "c"}], "replicas": 2**60 + 1},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Built", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("path", "results"),
    [
        ("metadata.name", ["web"]),
        (".metadata.name", ["web"]),
        ("{.metadata.name}", ["web"]),
        (r"metadata.labels.app\.kubernetes\.io/name", ["shop"]),
        (r"metadata.labels['app\.kubernetes\.io/name']", ["shop"]),
        ("metadata.labels.x-y", ["1"]),
        ("spec.containers[0].name", ["a"]),
        ("spec.containers[-1].name", ["c"]),
        ("spec.containers[0:2].name", ["a", "b"]),
        ("spec.containers[::2].name", ["a", "c"]),
        ("spec.containers[*].port", [1, 2]),
        ("spec.containers[].name", ["a"]),
        ("spec.containers.*.name", ["a", "b", "c"]),
        ("..port", [1, 2]),
        ("metadata['name','labels'].x-y", ["1"]),
        ("spec.containers[0,2].name", ["a", "c"]),
        ("spec.containers[?(@.port)].name", ["a", "b"]),
        ('spec.containers[?(@.name>="b")].name', ["b", "c"]),
        ('status.conditions[?(@.type=="Ready")].status', ["True"]),
        ("status.conditions[?(@.type!='Ready')].status", ["False"]),
        ("spec.replicas", [2**60 + 1]),
        ("metadata.annotations", [None]),
    ],
)
def test_a_path_finds_what_client_go_finds(path: str, results: list[Any]) -> None:
    assert parse_path(path).find(POD) == results


@pytest.mark.parametrize(
    "path",
    [
        "metadata.namespace",
        "metadata.name.first",
        "metadata.annotations.x",
        "spec.containers[3]",
        "spec.containers[?(@.port>1)].name",
        'status.conditions[?(@.type=="Gone")].status',
        "metadata.labels.app.kubernetes.io/name",
    ],
)
def test_a_path_that_leads_nowhere_says_which(path: str) -> None:
    with pytest.raises(NoResult) as none:
        parse_path(path).find(POD)
    assert str(none.value) == f"jsonpath returned empty list: {path}"


def test_several_results_are_too_many_where_one_is_asked_for() -> None:
    with pytest.raises(PathError) as many:
        parse_path("spec.containers[*].name").one(POD)
    assert str(many.value) == "too many results for the query: spec.containers[*].name"
    assert not isinstance(many.value, NoResult)


def test_an_empty_path_is_refused() -> None:
    with pytest.raises(PathError, match=r"^empty jsonpath not allowed$"):
        parse_path("")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("a[", "unterminated array"),
        ("a[?(@.b", "unterminated filter"),
        ("a[?(@.b)", "unclosed array expect ]"),
        ("a[x]", "invalid array index x"),
        ("a[-]", "not a number"),
        ("a['b", "unterminated array"),
        ("a....b", "recursive descent"),
        ("a {range .b}", "unrecognized character"),
        ("a range .b", "range is not supported"),
        ("a}{.b", "text after }"),
        ("a[?(@.b==.)]", ""),
        ("a\n.b", "unclosed action"),
        ("a('b')", ""),
        ("\x00", ""),
        (r'a[?(@.b=="\q")]', "no escape"),
        ("a" * 1025, "at most 1024 characters"),
    ],
)
def test_a_path_that_cannot_be_read_says_why(path: str, said: str) -> None:
    with pytest.raises(PathError) as refused:
        parse_path(path).one({"a": [{"b": 1}]})
    assert said in str(refused.value)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("spec.replicas[0]", "not array or slice"),
        ("metadata[?(@.name)]", "cannot be filtered"),
        ("spec.containers[?(@.port>'a')]", "incompatible types"),
        ("spec.containers[?(@.name>1)]", "incompatible types"),
        ("status.conditions[?(@==1)]", "invalid type"),
        ("spec.containers[0:3:0]", "step must be"),
        ("spec.containers[2:1]", "greater than ending index"),
        ("spec.containers[?(@.name=1)]", "filter operator"),
    ],
)
def test_an_evaluation_that_fails_says_why(path: str, said: str) -> None:
    with pytest.raises(PathError, match=r"^evaluate: ") as failed:
        parse_path(path).find(POD)
    assert said in str(failed.value)


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"b": 1}
    for _ in range(depth):
        value = {"a": value}
    return value


def test_brackets_without_end_are_refused_for_their_length() -> None:
    for text in ("[" * 10_000, "a" + "[?(" * 3_000, "[[0]" * 2_500):
        with pytest.raises(PathError, match="at most 1024 characters"):
            parse_path(text)
    for text in ("[" * 1_000, "a" + "[?(@" * 200, "a" + "['b']" * 200, "'" * 1_000):
        with pytest.raises(PathError):
            parse_path(text).find(POD)


def test_descendants_of_a_deep_object_need_no_stack() -> None:
    assert parse_path("..b").find(nested(20_000)) == [1]


@pytest.mark.parametrize("path", ["..a..b", "...*", "..*..*", "*.*.*", "..['a','b']..", "..a[?(@.b)]"])
def test_an_evaluation_has_a_bound(path: str) -> None:
    wide = {"a": [{"a": [{"b": [1] * 100}] * 40}] * 40}
    try:
        found = parse_path(path).find({**nested(50), "a": [wide] * 100})
    except PathError:
        return
    assert len(found) <= STEPS


def test_a_wide_object_is_given_up_in_time() -> None:
    with pytest.raises(PathError, match="more than 100,000 steps"):
        parse_path("..x").find({"a": [[1, 2, 3]] * 50_000})
