"""Field sets in their wire shape are sets of paths."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kardinal_local.plane.apply.fieldsets import difference, intersection, paths, union

steps = st.sampled_from(["f:a", "f:b", 'v:"x"', 'k:{"n":1}'])
nodes: st.SearchStrategy[Any] = st.recursive(
    st.just({}),
    lambda inner: st.builds(
        lambda children, member: {**children, **({".": {}} if member else {})},
        st.dictionaries(steps, inner, min_size=1, max_size=3),
        st.booleans(),
    ),
    max_leaves=6,
)
sets = st.dictionaries(steps, nodes, max_size=3)


@given(sets, sets)
@settings(max_examples=80, deadline=None)
def test_the_algebra_of_field_sets_is_that_of_their_paths(left: Any, right: Any) -> None:
    one, two = set(paths(left)), set(paths(right))
    assert set(paths(union(left, right))) == one | two
    assert set(paths(difference(left, right))) == one - two
    assert set(paths(intersection(left, right))) == one & two
    assert bool(difference(left, right)) == bool(one - two)
