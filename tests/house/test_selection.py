"""Which tests an option chooses, and how many may stay on the local plane.

Few end-to-end tests may need the local plane itself, or a clock that is moved: a real server proves the rest.
"""

from __future__ import annotations

import pytest

from tests.support.selection import shares_of

FEW = 100

MARKED = """
    import pytest

    @pytest.mark.{mark}({reason})
    def test_something(api_server: object) -> None:
        pass

    @pytest.fixture
    def api_server() -> object:
        return object()
"""


AT_HOSTS = """
    import pytest

    @pytest.fixture(params=["local", "gitea"])
    def host_server(request: pytest.FixtureRequest) -> object:
        return request.param

    @pytest.fixture
    def project(gitea: object) -> object:
        return gitea

    def test_at_a_host(host_server: object) -> None:
        pass

    def test_in_a_project(project: object) -> None:
        pass

    def test_without() -> None:
        pass
"""


def run(
    pytester: pytest.Pytester, source: str, *arguments: str, plugin: str = "tests.support.selection"
) -> pytest.RunResult:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile(source)
    return pytester.runpytest("-p", "tests.support.target", "-p", plugin, *arguments)


def test_marks_for_the_local_plane_and_for_virtual_time_are_on_a_tenth_at_most(
    request: pytest.FixtureRequest,
) -> None:
    shares = shares_of(request.session.items)
    # Of a few tests that were chosen by hand, the shares say nothing.
    assert shares.end_to_end < FEW or shares.local_only * 10 <= shares.end_to_end
    assert shares.end_to_end < FEW or shares.virtual_time * 10 <= shares.end_to_end


@pytest.mark.parametrize("mark", ["local_only", "virtual_time"])
def test_a_mark_without_a_reason_is_refused(pytester: pytest.Pytester, mark: str) -> None:
    result = run(pytester, MARKED.format(mark=mark, reason=""))
    result.stderr.fnmatch_lines([f"*test_something: {mark} needs a reason"])


@pytest.mark.parametrize(
    ("mark", "lines"),
    [
        ("local_only", ["local_only: 1 of 1 * (100.0%) need *", "virtual_time: 0 of 1 * (0.0%) move *"]),
        ("virtual_time", ["local_only: 0 of 1 * (0.0%) need *", "virtual_time: 1 of 1 * (100.0%) move *"]),
    ],
)
def test_marked_tests_are_counted(pytester: pytest.Pytester, mark: str, lines: list[str]) -> None:
    result = run(pytester, MARKED.format(mark=mark, reason="'its directory'"))
    result.stdout.fnmatch_lines(lines)


def test_gitea_chooses_the_tests_that_use_a_real_one(pytester: pytest.Pytester) -> None:
    chosen = run(pytester, AT_HOSTS, "--gitea", "--collect-only", "-q", plugin="tests.support.gitea")
    assert [line.partition("::")[2] for line in chosen.outlines if "::" in line] == [
        "test_at_a_host[gitea]",
        "test_in_a_project",
    ]
    all_of_them = run(pytester, AT_HOSTS, "--collect-only", "-q", plugin="tests.support.gitea")
    assert len([line for line in all_of_them.outlines if "::" in line]) == 4
