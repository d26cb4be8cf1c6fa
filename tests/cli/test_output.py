"""Tables, and where colour goes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kardinal.cli.output import plain_text, print_table, state_text

ROOT = Path(__file__).parents[2]


def on_a_terminal(script: str, **environment: str) -> list[str]:
    """Return the lines that a script writes to a terminal."""
    reader, terminal = os.openpty()
    environment = {"PATH": os.environ["PATH"], "TERM": "xterm", **environment}
    try:
        subprocess.run([sys.executable, "-c", script], env=environment, stdout=terminal, check=True, cwd=ROOT)
        return os.read(reader, 4096).decode().splitlines()
    finally:
        os.close(reader)
        os.close(terminal)


def test_columns_are_as_wide_as_what_is_in_them(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["NAME", "STATE", "AGE"], [["a", "Verified", "1s"], ["日本語", "-", ""], ["é", "", "2s"]], empty="none")
    assert capsys.readouterr().out.splitlines() == [
        "NAME     STATE      AGE",
        "a        Verified   1s",
        "日本語   -",
        "é                   2s",
    ]


def test_a_cell_of_several_lines_stays_in_its_column(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["NAME", "MESSAGE", "AGE"], [["a", "first\nsecond", "1s"], ["b", "", "2s"]], empty="none")
    assert capsys.readouterr().out.splitlines() == [
        "NAME   MESSAGE   AGE",
        "a      first     1s",
        "       second",
        "b                2s",
    ]


def test_brackets_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["MESSAGE"], [["[red]gate[/red] [org]"]], empty="none")
    assert "[red]gate[/red] [org]" in capsys.readouterr().out


def test_an_empty_table_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["NAME"], [], empty="create one")
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "create one\n")


TABLE = """
from kardinal.cli.output import plain_text, print_table, state_text
print_table(["STATE", "AGE"], [[state_text("Verified"), "1s"], [state_text("Pending"), "2s"]], empty="none")
"""


def test_a_terminal_shows_colours_and_columns_stay_aligned() -> None:
    assert on_a_terminal(TABLE) == [
        "\x1b[1mSTATE\x1b[0m      \x1b[1mAGE\x1b[0m",
        "\x1b[32mVerified\x1b[0m   1s",
        "Pending    2s",
    ]


PLAIN = 'from kardinal.cli.output import say, styled; say(styled("as it is", fg=None))'


def test_no_colour_is_no_style() -> None:
    assert on_a_terminal(PLAIN) == ["as it is"]


OTHERS = """
from kardinal.cli.output import print_table, say, state_text, styled
evil = "\\x1b[8mVerified\\x1b[0m"
print_table(["STATE"], [[evil], [state_text(evil)], [styled(evil, fg="red")]], empty="none")
say(styled("ours", dim=True) + evil)
"""


def test_a_style_that_others_wrote_is_shown_and_not_obeyed() -> None:
    shown = "\\x1b[8mVerified\\x1b[0m"
    assert on_a_terminal(OTHERS) == [
        "\x1b[1mSTATE\x1b[0m",
        shown,
        shown,
        f"\x1b[31m{shown}\x1b[0m",
        f"\x1b[2mours\x1b[0m{shown}",
    ]


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colour_can_be_turned_off(name: str, value: str) -> None:
    assert on_a_terminal(TABLE, **{name: value}) == ["STATE      AGE", "Verified   1s", "Pending    2s"]


def test_pipe_gets_no_colour() -> None:
    assert state_text("Failed") == "Failed"


def test_markdown_is_shown_without_html_and_writes_nothing_else_to_the_terminal() -> None:
    body = (
        "## a &lt;b&gt; &amp;\n<details>\n<summary>Diff</summary>\n\nx&#8238;&#64;\n</details>\n<!-- kardinal 1 -->\n"
    )
    assert plain_text(body) == "## a <b> &\nDiff:\n\nx\\u202e@"
