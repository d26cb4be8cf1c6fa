"""Few of the end-to-end tests may need the local plane itself, or the real API server would prove little."""

from __future__ import annotations

import pytest

from tests.support.selection import shares_of

FEW = 100

MARKED = """
    import pytest

    @pytest.mark.local_only({reason})
    def test_something() -> None:
        pass
"""


def run(pytester: pytest.Pytester, source: str) -> pytest.RunResult:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile(source)
    return pytester.runpytest("-p", "tests.support.target", "-p", "tests.support.selection")


def test_at_most_a_tenth_of_the_end_to_end_tests_needs_the_local_plane(request: pytest.FixtureRequest) -> None:
    shares = shares_of(request.session.items)
    # Of a few tests that somebody chose, the share says nothing.
    assert shares.end_to_end < FEW or shares.local_only * 10 <= shares.end_to_end


def test_a_mark_without_a_reason_is_refused(pytester: pytest.Pytester) -> None:
    result = run(pytester, MARKED.format(reason=""))
    result.stderr.fnmatch_lines(["*test_something: local_only needs a reason"])


def test_what_is_local_only_is_counted(pytester: pytest.Pytester) -> None:
    result = run(pytester, MARKED.format(reason="'its directory'"))
    result.stdout.fnmatch_lines(["local_only: 1 of 1 end-to-end tests (100.0%) need the local plane itself"])
