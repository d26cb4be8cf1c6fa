"""The behaviours that are deleted to try the tests are still where the list says."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from hack.mutations.__main__ import ROOT, Mutation, load

MUTATIONS = load()


def test_there_are_at_least_twenty_and_each_has_its_own_name() -> None:
    assert len({one.name for one in MUTATIONS}) == len(MUTATIONS) >= 20


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.name)
def test_a_mutation_fits_in_one_place_and_leaves_python(mutation: Mutation, tmp_path: Path) -> None:
    copy = tmp_path / mutation.file
    copy.parent.mkdir(parents=True)
    copy.write_text((ROOT / mutation.file).read_text())
    mutation.apply(tmp_path)
    ast.parse(copy.read_text())
    assert copy.read_text() != (ROOT / mutation.file).read_text()


def test_a_mutation_that_no_longer_fits_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    with pytest.raises(SystemExit, match=r"holds the text to replace 0 times"):
        replace(MUTATIONS[0], file="a.py").apply(tmp_path)
