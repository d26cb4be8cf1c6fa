"""The layout of tables for terminals of every width."""

from __future__ import annotations

import pytest

from kardinal.cli.styles import mark_style
from kardinal.cli.table import laid_out, text_width, wrapped

BUNDLE = "my-application-1-29-0-plus-2-1763850000"
MESSAGE = "the workload runs ghcr.io/acme/my-app:1.28.0 and not what was promoted; the rollout has 1 of 3 replicas"
HEADERS = ["ENVIRONMENT", "BUNDLE", "STATE", "VERSION", "MESSAGE", "AGE"]
ROWS = [
    ["production-eu-west-1", BUNDLE, "WaitingForMerge", "1.29.0-rc.1+build.77", MESSAGE, "12d"],
    ["dev", "b", "Verified", "1.0.0", "", "1s"],
]


@pytest.mark.parametrize("width", [20, 40, 80, 100, 200, None])
def test_no_name_state_or_version_is_cut_or_left_out(width: int | None) -> None:
    lines = laid_out(HEADERS, ROWS, width=width, prose=("MESSAGE",))
    printed = "\n".join(lines).split()
    for row in ROWS:
        assert {cell for cell in row if " " not in cell and cell} <= set(printed)
    assert [word for word in printed if word in set(MESSAGE.split())] == MESSAGE.split()
    assert not any(line.endswith(" ") for line in lines)


@pytest.mark.parametrize("width", [80, 100, 200])
def test_lines_fit_the_terminal(width: int) -> None:
    assert max(map(text_width, laid_out(HEADERS, ROWS, width=width, prose=("MESSAGE",)))) <= width


def test_columns_that_do_not_fit_continue_on_an_indented_line_in_their_order() -> None:
    assert laid_out(HEADERS, ROWS, width=80, prose=("MESSAGE",)) == [
        "ENVIRONMENT            BUNDLE                                    STATE",
        "    VERSION                AGE",
        "    MESSAGE",
        "production-eu-west-1   my-application-1-29-0-plus-2-1763850000   WaitingForMerge",
        "    1.29.0-rc.1+build.77   12d",
        "    the workload runs ghcr.io/acme/my-app:1.28.0 and not what was promoted; the",
        "    rollout has 1 of 3 replicas",
        "dev                    b                                         Verified",
        "    1.0.0                  1s",
    ]


def test_prose_is_wrapped_in_its_column_where_there_is_room() -> None:
    assert laid_out(
        ["NAME", "MESSAGE", "AGE"], [["a", "one two three four five six seven", "1s"]], width=43, prose=("MESSAGE",)
    ) == [
        "NAME   MESSAGE                          AGE",
        "a      one two three four five six      1s",
        "       seven",
    ]


def test_a_row_that_fits_is_one_line() -> None:
    assert laid_out(["NAME", "STATE"], [["a", "b"]], width=80) == ["NAME   STATE", "a      b"]


def test_an_indented_line_without_any_cell_is_left_out_with_its_header() -> None:
    lines = laid_out(["BUNDLE", "COMMIT", "AUTHOR"], [["x" * 40, "", ""], ["y", "", ""]], width=42)
    assert lines == ["BUNDLE", "x" * 40, "y"]


def test_a_word_that_is_wider_than_the_terminal_stays_whole() -> None:
    assert wrapped(f"see {'x' * 30} there", 10) == ["see", "x" * 30, "there"]


def test_wide_characters_and_styles_are_counted_as_they_are_shown() -> None:
    assert text_width(mark_style("日本", fg="green")) == 4
