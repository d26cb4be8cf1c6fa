"""How many inputs a fuzz test tries, and pieces that several of them put together."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

__all__ = ["INPUTS", "JSON", "fuzzed", "texts"]

INPUTS = int(os.environ.get("FUZZ_INPUTS", "40"))
"""Inputs of one test. `.ci/run` asks for 500, and `make soak`, which `.ci/long` runs, for 100,000."""

fuzzed = settings(max_examples=INPUTS, suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example])

texts = st.text(max_size=40) | st.sampled_from(
    ["", "..", "/", "a/../b", "${", "$${", "\x00", "é", "a" * 300, "https://"]
)

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
