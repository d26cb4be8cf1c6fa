"""JSON of others is decoded within bounds that are counted before, in whatever way a string hides its brackets."""

from __future__ import annotations

import threading

import orjson
import pytest

from kardinal.bounded import Holding, JsonLimits, NotJson, OverLimit, decode, decode_held

LIMITS = JsonLimits(size=1 << 20)
DEEP = b"[" * 500 + b"]" * 500


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[" + b"1," * (1 << 19) + b"1]", "bytes"),
        (b"[" * (1 << 20), "lists and objects"),
        (b"[" + b"[]," * 30_000 + b"1]", "lists and objects"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "deeper than 64 levels"),
        (b'["\\\\",' + DEEP + b"]", "deeper than 64 levels"),
        (b'["\\"]",' + DEEP + b"]", "deeper than 64 levels"),
        (b'["\\\\\\"",' + DEEP + b"]", "deeper than 64 levels"),
        (b"[" + b"1," * 300_000 + b"1]", "values"),
        (b"[" + b'"",' * 150_000 + b'""]', "values"),
    ],
    ids=["size", "open", "empty lists", "nested", "backslash", "quote", "both", "numbers", "strings"],
)
def test_document_beyond_a_bound_is_refused_before_decoding(
    content: bytes, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orjson, "loads", lambda _: pytest.fail("decoded"))
    with pytest.raises(OverLimit, match=said):
        decode(content, LIMITS)


def test_brackets_and_commas_in_strings_are_text() -> None:
    text = '[{,"\\' * 50_000
    document = decode(orjson.dumps({"body": text, "[" * 100: "]" * 100}), LIMITS)
    assert document["body"] == text


@pytest.mark.parametrize("content", [b"", b"{", b"<html>", b"\xff", b'{"a":1}}', b"NaN", b'"a', b"[1] [2]"])
def test_invalid_json_is_reported_by_position_without_its_text(content: bytes) -> None:
    with pytest.raises(NotJson, match=r"^it is not JSON \(line 1, column \d+\)$"):
        decode(content, LIMITS)


async def test_a_large_document_is_decoded_on_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []
    loads = orjson.loads

    def seen(content: bytes) -> object:
        threads.append(threading.current_thread())
        return loads(content)

    monkeypatch.setattr(orjson, "loads", seen)
    holding = Holding(share=1 << 20, total=1 << 20)
    for content in (b"[1]", b'"' + b"a" * 100_000 + b'"'):
        _, held = await decode_held(content, LIMITS, holding=holding, owner="team")
        held.release()
    assert [thread is threading.main_thread() for thread in threads] == [True, False]


async def test_room_is_taken_for_a_document_that_is_decoded_and_for_no_other() -> None:
    holding = Holding(share=1 << 20, total=1 << 20)
    value, held = await decode_held(b'["a", "b"]', LIMITS, holding=holding, owner="team")
    assert value == ["a", "b"]
    assert holding.held > 100
    held.release()
    with pytest.raises(NotJson):
        await decode_held(b'["a", "b"', LIMITS, holding=holding, owner="team")
    assert holding.held == 0
