"""Answers are kept for conditional requests, within bounds."""

from __future__ import annotations

import pytest

from kardinal.scm.http import HostAnswer, cache
from kardinal.scm.http.cache import AnswerCache


def tagged(tag: str, body: bytes = b"[]") -> HostAnswer:
    return HostAnswer(200, {"etag": tag}, body)


def test_unchanged_answer_comes_from_the_cache_with_new_headers() -> None:
    kept = AnswerCache()
    kept.resolve("a", "/pulls", HostAnswer(200, {"etag": "v1", "x-ratelimit-remaining": "9"}, b"[1]"))
    assert kept.tag("a", "/pulls") == "v1"
    again = kept.resolve("a", "/pulls", HostAnswer(304, {"x-ratelimit-remaining": "8"}))
    assert (again.status, again.body, again.headers["x-ratelimit-remaining"]) == (200, b"[1]", "8")


def test_an_answer_belongs_to_its_credential_and_its_address() -> None:
    kept = AnswerCache()
    kept.resolve("a", "/pulls", tagged("v1"))
    assert kept.tag("b", "/pulls") is None
    assert kept.tag("a", "/pulls?page=2") is None
    assert kept.resolve("b", "/pulls", HostAnswer(304)).status == 304


@pytest.mark.parametrize("answer", [HostAnswer(200, {}, b"[2]"), HostAnswer(404), HostAnswer(500)])
def test_an_answer_that_took_the_place_of_a_kept_one_is_asked_for_anew(answer: HostAnswer) -> None:
    kept = AnswerCache()
    kept.resolve("a", "/pulls", tagged("v1"))
    assert kept.resolve("a", "/pulls", answer) == answer
    assert kept.tag("a", "/pulls") is None


def test_the_answers_used_longest_ago_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_ENTRIES", 2)
    kept = AnswerCache()
    for url in ("/1", "/2"):
        kept.resolve("a", url, tagged("v1"))
    kept.resolve("a", "/1", HostAnswer(304))
    kept.resolve("a", "/3", tagged("v1"))
    assert [kept.tag("a", url) for url in ("/1", "/2", "/3")] == ["v1", None, "v1"]


def test_large_answers_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_BYTES", 100)
    kept = AnswerCache()
    for number in range(5):
        kept.resolve("a", "/same", tagged(f"v{number}", b"x" * 60))
    assert kept.tag("a", "/same") == "v4"
    kept.resolve("a", "/other", tagged("v1", b"x" * 60))
    assert [kept.tag("a", url) for url in ("/same", "/other")] == [None, "v1"]
    kept.resolve("a", "/huge", tagged("v1", b"x" * 101))
    assert [kept.tag("a", url) for url in ("/same", "/other", "/huge")] == [None, None, None]
