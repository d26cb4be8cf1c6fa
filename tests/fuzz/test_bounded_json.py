"""The bounds of a JSON document are counted in its bytes as the decoder would find them, whatever stands in strings."""

from __future__ import annotations

import sys
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kardinal.bounded import JsonLimits, NotJson, OverLimit, decode, measure
from tests.fuzz.inputs import fuzzed

ROOMY = JsonLimits(size=1 << 20, depth=2_000)

hostile_texts = st.text(st.sampled_from('[]{},:"\\\n\x00aé😀'), max_size=12) | st.text(max_size=5)
documents: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | hostile_texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(hostile_texts, inner, max_size=4),
    max_leaves=30,
)
noise = st.binary(max_size=80) | st.text(st.sampled_from('[]{},:"\\ 1a'), max_size=40).map(str.encode)


def shape(value: Any) -> tuple[int, int, int]:
    """Return (depth, containers, pieces) of a decoded document."""
    if isinstance(value, str):
        return 0, 0, 1
    if not isinstance(value, (list, dict)):
        return 0, 0, 0
    inner = [*map(shape, value.values() if isinstance(value, dict) else value)]
    keys = len(value) if isinstance(value, dict) else 0
    return (
        1 + max((depth for depth, _, _ in inner), default=0),
        1 + sum(containers for _, containers, _ in inner),
        1 + keys + max(len(value) - 1, 0) + sum(pieces for _, _, pieces in inner),
    )


def memory(value: Any) -> int:
    """Return the bytes that a decoded document takes, with what the collector adds."""
    if isinstance(value, list):
        return sys.getsizeof(value) + 16 + sum(map(memory, value))
    if isinstance(value, dict):
        return sys.getsizeof(value) + 16 + sum(memory(key) + memory(inner) for key, inner in value.items())
    return sys.getsizeof(value)


@fuzzed
@given(documents)
def test_a_document_is_decoded_within_its_bounds_and_refused_beyond_one_of_them(value: Any) -> None:
    content = orjson.dumps(value)
    depth, containers, pieces = shape(value)
    exact = {"size": len(content), "depth": depth, "containers": containers, "pieces": pieces}
    decoded = decode(content, JsonLimits(**exact))
    assert decoded == orjson.loads(content)
    for bound, most in exact.items():
        if most:
            with pytest.raises(OverLimit):
                decode(content, JsonLimits(**{**exact, bound: most - 1}))


@fuzzed
@given(documents)
def test_a_document_takes_no_more_memory_than_is_counted(value: Any) -> None:
    content = orjson.dumps(value)
    assert memory(orjson.loads(content)) <= measure(content, ROOMY)


@fuzzed
@given(noise)
def test_any_bytes_are_decoded_or_refused(content: bytes) -> None:
    tight = JsonLimits(size=64, depth=3, containers=5, pieces=10)
    try:
        value = decode(content, tight)
    except (OverLimit, NotJson):
        return
    depth, containers, pieces = shape(value)
    assert depth <= tight.depth
    assert value == orjson.loads(content)
    # Of keys that stand twice the last remains, so that fewer are found than were counted.
    assert containers <= tight.containers
    assert pieces <= tight.pieces
