"""Marks in the body of a pull request delimit the text that kardinal may rewrite."""

from __future__ import annotations

import pytest

from kardinal_agent.steps.text_marks import marked, named_bundles, own_part, text_digest

UID = "8d0a3d9e-0000-4000-8000-000000000001"
TITLE = "Promote my-app 1.1.0 to prod"
TEXT = "## Promotion: my-app 1.1.0 to prod\n\n| soak | org | PASS |"
DIGEST = text_digest(TITLE, TEXT)
OURS = marked(TEXT, uid=UID, digest=DIGEST, title=TITLE)
BEGIN, *_, END = OURS.splitlines()
ZEROS = "0" * 16
NOTE = "Do **not** merge: see the incident.\n"


@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_own_part_ends_at_its_marks(ending: str) -> None:
    above = f"{NOTE}\n".replace("\n", ending)
    below = "\n- [x] looked at the dashboards\n\n<details>mine</details>".replace("\n", ending)
    part = own_part(above + OURS.replace("\n", ending) + below, uid=UID)
    assert part is not None
    # The line of the end mark has its line feed in the text below.
    assert (part.before, part.after, part.digest) == (above, below.removeprefix("\r"), DIGEST)
    assert part.has_title(f"  {TITLE} ")
    assert not part.has_title(f"HOLD: {TITLE}")


@pytest.mark.parametrize(
    "theirs",
    [
        f"{NOTE}<!-- /kardinal {ZEROS} -->\n",
        f"<!-- kardinal {UID} {ZEROS} {ZEROS} -->\n{NOTE}",
        f"<!-- kardinal other {ZEROS} {ZEROS} -->\n{NOTE}<!-- /kardinal {ZEROS} -->\n",
        f"{BEGIN}\n{NOTE}",
        f"{NOTE}{END}\n",
    ],
    ids=["end", "begin", "pair", "copied begin", "copied end"],
)
def test_marks_that_people_forge_take_nothing_of_theirs(theirs: str) -> None:
    part = own_part(f"{theirs}{OURS}\n{theirs}", uid=UID)
    assert part is not None
    assert (part.before, part.after) == (theirs, f"\n{theirs}")


def test_a_mark_within_a_line_is_none() -> None:
    inside = marked(f"{TEXT}\n# {END}\n# {BEGIN}\n# {END}", uid=UID, digest=DIGEST, title=TITLE)
    part = own_part(inside, uid=UID)
    assert part is not None
    assert (part.before, part.after) == ("", "")


def test_a_text_without_our_marks_is_a_persons() -> None:
    assert own_part(NOTE, uid=UID) is None
    assert own_part(OURS, uid="another") is None
    assert named_bundles(NOTE) == frozenset()
    assert named_bundles(OURS) == {UID}
