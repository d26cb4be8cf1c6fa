"""Text of others writes nothing to the terminal: it is shown, whatever command prints it and wherever it comes from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kardinal.cli.output import print_table
from kardinal.kube import PatchType
from kardinal.objects import JsonObject, ResourceType
from kardinal.promotion.kinds import BUNDLE, PIPELINE
from tests.cli.conftest import Cli
from tests.cli.in_process import cli
from tests.cli.terminal import on_terminal
from tests.support.names import DEV, TEAM
from tests.support.objects import bundle, gate, pipeline
from tests.support.repository import GitRepository
from tests.support.world import World

__all__ = ["cli"]

EVIL = "\x1b[8mhidden\x1b[2J\x1b]0;title\x07\x9b2J\u202eb\u2066c\x00\x7f\ud7ff\rover"
"""Conceal, clear, title of the window, C1, bidirectional overrides, NUL, DEL and a return to the begin of the line."""
SHOWN = "\\x1b[8mhidden\\x1b[2J\\x1b]0;title\\x07\\x9b2J\\u202eb\\u2066c"
ROOT = Path(__file__).parents[2]


def assert_harmless(printed: str) -> None:
    assert all(line.isprintable() for line in printed.replace("\t", " ").split("\n")), ascii(printed)


@pytest.fixture
async def promotion(world: World, repository: GitRepository) -> None:
    """Objects with the text of CI, of a host and of a tenant, as a server without our definitions could have them."""
    evil = EVIL.replace("\x00", "")
    await world.apply(
        pipeline(repository),
        bundle("my-app-1", provenance={"author": evil, "ciRunURL": "https://ci.example.com/1", "commitSHA": "ab" * 20}),
        bundle("my-app-2", provenance={"author": f"{evil} too", "commitSHA": "cd" * 20}),
        gate("closed", "false", applies_to=DEV, message=evil),
    )
    moment = "2026-03-03T10:00:00Z"
    condition = {"status": "False", "reason": "Why", "message": evil, "lastTransitionTime": moment}
    entry = {"state": "Failed", "message": evil, "startedAt": moment, "evidence": {"approvedBy": [evil]}}
    status = {"phase": "Failed", "pipeline": "my-app", "environments": {DEV: entry}}
    conditions = {"conditions": [{"type": "Ready", **condition}]}
    await _status(world, BUNDLE, "my-app-1", {**status, **conditions})
    unready = {"conditions": [{"type": each, **condition} for each in ("Ready", "RepositoryReady")]}
    await _status(world, PIPELINE, "my-app", unready)


async def _status(world: World, resource: ResourceType, name: str, status: JsonObject) -> None:
    await world.client.patch(resource, name, TEAM, {"status": status}, kind=PatchType.MERGE, subresource="status")


COMMANDS = [
    ("get", "pipelines", "-o", "wide"),
    ("get", "bundles", "my-app", "-o", "wide"),
    ("get", "steps", "my-app", "-o", "wide"),
    ("status", "my-app", "--bundle", "my-app-1"),
    ("explain", "my-app", "--env", DEV, "--bundle", "my-app-1"),
    ("history", "my-app"),
    ("diff", "my-app-1", "my-app-2"),
    ("policy", "coverage"),
]


@pytest.mark.local_only("a server with our definitions stores no such text")
async def test_no_command_writes_what_others_wrote_to_the_terminal(cli: Cli, promotion: None) -> None:
    done = [await cli.attempt(*command) for command in COMMANDS]
    printed = "".join(each.out + each.err for each in done)
    assert_harmless(printed)
    assert printed.count(SHOWN) >= 5


@pytest.mark.local_only("a server with our definitions stores no such text")
async def test_a_terminal_is_told_no_more(cli: Cli, promotion: None) -> None:
    lines = await on_terminal(cli, "status", "my-app", "--bundle", "my-app-1", columns=200)
    assert "hidden" in "".join(lines)
    for line in lines:
        assert_harmless(line)


@pytest.mark.local_only("a server with our definitions stores no such text")
async def test_json_and_yaml_stay_what_they_are(cli: Cli, promotion: None) -> None:
    for output in ("json", "yaml"):
        printed = await cli("get", "bundles", "my-app", "-o", output)
        assert_harmless(printed)
        assert "hidden" in printed


async def test_names_of_files_and_fields_are_shown(cli: Cli, tmp_path: Path) -> None:
    directory = tmp_path / "manifests"
    directory.mkdir()
    name = "a\x1b[2J\n0.yaml: fine\udcff.yaml"
    (directory / name).write_text(
        'apiVersion: kardinal.io/v1alpha1\nkind: Bundle\nspec: {"x\\e[2J\\n1.yaml: fine": 1}\n'
    )
    done = await cli.within(directory).attempt("lint", "-f", ".")
    assert done.code == 1
    assert_harmless(done.err)
    assert all("a\\x1b[2J\\n0.yaml: fine\\udcff.yaml:" in line for line in done.err.splitlines())
    (directory / name).write_bytes(b"\xff")
    for command in (("lint", "-f", "."), ("init", "-f", name), ("lint", "-f", f"{name}x"), ("get", f"\x1b[2J{name}")):
        done = await cli.within(directory).attempt(*command)
        assert done.code in (1, 2)
        assert_harmless(done.out + done.err)
        assert "\\x1b[2J" in done.err


async def test_a_repository_that_is_read_writes_nothing_either(cli: Cli, repository: GitRepository) -> None:
    path = "apps/my\x1b[2Japp/overlays/prod/kustomization.yaml"
    repository.commit({path: "resources: [../x]\nimages:\n- name: ghcr.io/acme/a\x1b[8m\n  newTag: '1'\n"})
    done = await cli.attempt("init", "--from", repository.url)
    assert_harmless(done.out + done.err)


def test_columns_of_escaped_text_stay_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["NAME", "AGE"], [["a\x1b[1m", "1s"], ["b", "2s"]], empty="none")
    assert capsys.readouterr().out.splitlines() == ["NAME       AGE", "a\\x1b[1m   1s", "b          2s"]


def test_everything_is_printed_in_one_place() -> None:
    files = [*(ROOT / "kardinal/cli").rglob("*.py"), *(ROOT / "kardinal_local").glob("*.py")]
    files += (ROOT / "kardinal_local/commands").glob("*.py")
    raw = re.compile(r"click\.s?echo\(|(?<![\w.])print\(|click\.style\(|std(out|err)\.write\(")
    found = {file.name for file in files if raw.search(file.read_text())}
    assert found == {"output.py", "styles.py"}
