"""`kardinal cel`: a value as JSON, or the class, the place and a caret; never what the data holds."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.in_process import InProcess, cli

__all__ = ["cli"]

PAGE = Path(__file__).parents[2] / "docs" / "cel.md"
BOMB = "k0: &k0 [1, 1]\n" + "".join(f"k{n + 1}: &k{n + 1} [{', '.join([f'*k{n}'] * 9)}]\n" for n in range(9))
SECRET = "hunter2-c3VwZXJzZWNyZXQ"


@pytest.fixture
def context(tmp_path: Path) -> Path:
    data = {"dev": {"state": "Verified", "password": SECRET, "at": "2026-04-09T11:00:00Z"}, "xs": [1, 2]}
    file = tmp_path / "data.json"
    file.write_text(json.dumps(data))
    return file


@pytest.mark.parametrize(
    ("expression", "printed"),
    [
        ("dev.state", "Verified"),
        ("xs.map(x, x * 2)", [2, 4]),
        ("{'a': dev.?nope}", {}),
        ("dev.?nope", None),
        ("now() - timestamp(dev.at)", "3600s"),
    ],
)
async def test_a_value_is_json(cli: InProcess, context: Path, expression: str, printed: object) -> None:
    done = await cli.attempt("cel", expression, "--context", str(context), "--now", "2026-04-09T12:00:00Z")
    assert (done.code, json.loads(done.out)) == (0, printed)


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("dev.state ==", "syntax: the expression ends too early (at column 13)\ndev.state ==\n            ^"),
        ("dev.state &&\n\tnope(1)", "syntax: unknown function `nope` (at line 2, column 2)\n nope(1)\n ^"),
        ("1 + dev.nope", "missing: `dev.nope` is not there (at column 5)\n1 + dev.nope\n    ^"),
        ("dev.password + 1", "type: `+` does not take (string, int) (at column 14)\ndev.password + 1\n             ^"),
        (
            "int(dev.password)",
            "conversion: int() needs the digits of a whole number (at column 1)\nint(dev.password)\n^",
        ),
        ("1 / 0", "arithmetic: division by zero (at column 3)\n1 / 0\n  ^"),
        ("lists.range(99999999)", "limit: the expression takes more than"),
        ("b'x'", "unrepresentable: a value of type bytes cannot be a result"),
    ],
)
async def test_failure_has_its_class_and_place(cli: InProcess, context: Path, expression: str, error: str) -> None:
    done = await cli.attempt("cel", expression, "--context", str(context))
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"Error: {error}")
    assert SECRET not in done.err


async def test_yaml_is_read_as_an_api_server_has_it(cli: InProcess, tmp_path: Path) -> None:
    file = tmp_path / "data.yaml"
    file.write_text("at: 2026-04-09T11:00:00Z\nlist:\n- {a: 1}\n")
    done = await cli.attempt("cel", "timestamp(at).getHours() + list[0].a", "--context", str(file))
    assert (done.code, done.out) == (0, "12\n")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[1]", "has 0 maps, and the variables are the keys of one"),
        ("a: 1\n---\nb: 2\n", "has 2 maps"),
        ("a: [", "line "),
        (BOMB, "aliases make more than"),
    ],
)
async def test_a_context_that_is_no_map_is_refused(cli: InProcess, tmp_path: Path, text: str, error: str) -> None:
    file = tmp_path / "data.yaml"
    file.write_text(text)
    done = await cli.attempt("cel", "1", "--context", str(file))
    assert done.code == 1
    assert error in done.err


async def test_a_file_without_an_end_is_refused(cli: InProcess) -> None:
    done = await cli.attempt("cel", "1", "--context", "/dev/zero")
    assert done.code == 1
    assert "is not a regular file" in done.err


async def test_a_time_that_is_none_is_refused(cli: InProcess) -> None:
    done = await cli.attempt("cel", "now()", "--now", "noon")
    assert done.code == 2
    assert "it is no time such as 2026-04-09T12:00:00Z" in done.err


async def test_the_error_of_the_page_is_what_the_command_prints(cli: InProcess, tmp_path: Path) -> None:
    found = re.search(r"\$ echo '(.+)' \| kardinal cel '(.+)' --context -\n(.+?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    file = tmp_path / "data.json"
    file.write_text(found[1])
    done = await cli.attempt("cel", found[2], "--context", str(file))
    assert done.err == found[3]


@pytest.mark.parametrize(
    ("expression", "of_class", "place"),
    [
        ("dev.state ==", "syntax", (1, 13)),
        ("dev.state &&\n\tnope(1)", "syntax", (2, 2)),
        ("1 + dev.nope", "missing", (1, 5)),
        ("dev.password + 1", "failed", (1, 14)),
        ("1 / 0", "failed", (1, 3)),
    ],
)
def test_error_for_a_program_is_printed_on_standard_output(
    cli: InProcess, context: Path, expression: str, of_class: str, place: tuple[int, int]
) -> None:
    done = cli.run("cel", expression, "--context", str(context), "-o", "json")
    found = json.loads(done.out)
    assert (done.code, done.err, found["class"], (found["line"], found["column"])) == (1, "", of_class, place)
    assert set(found) == {"class", "message", "line", "column"}
    assert SECRET not in done.out


def test_expression_that_is_too_expensive_has_the_class_cost(cli: InProcess, tmp_path: Path) -> None:
    file = tmp_path / "data.json"
    file.write_text(json.dumps({"xs": list(range(400))}))
    done = cli.run("cel", "xs.all(a, xs.all(b, xs.all(c, a + b + c >= 0)))", "--context", str(file), "-o", "json")
    assert (done.code, json.loads(done.out)["class"]) == (1, "cost")
