"""Small things that a person meets: versions, misspelt words, completion, and finding the API server."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Cli
from tests.cli.in_process import InProcess, cli
from tests.support.names import DEV, PROD, STAGING, TEAM
from tests.support.objects import bundle, pipeline
from tests.support.world import World

__all__ = ["cli"]

REPOSITORY = "https://git.example.com/acme/gitops.git"


async def test_the_version_is_printed_without_a_server(tmp_path: Path) -> None:
    assert await InProcess(tmp_path / "none", tmp_path)("--version") == f"kardinal {version('kardinal')}\n"


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [(["stauts"], "status"), (["get", "stesp"], "steps"), (["pr", "lst"], ""), (["xyz"], "")],
    ids=str,
)
async def test_a_misspelt_verb_is_answered_with_the_nearest(tmp_path: Path, arguments: list[str], meant: str) -> None:
    done = await InProcess(tmp_path / "none", tmp_path).attempt(*arguments)
    assert done.code == 2
    assert f"No such command {arguments[-1]!r}." in done.err
    assert not meant or f"Did you mean {meant}?" in done.err


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["pause", "app", "--message", "x"], ""),
        (["pause", "app", "--reasn", "x"], "--reason"),
        (["get", "steps", "--namespce", "x"], "--namespace"),
        (["pr", "list", "--messages", "x"], ""),
    ],
    ids=str,
)
async def test_an_option_that_there_is_not_is_answered_with_one_that_is_almost_it_or_with_none(
    tmp_path: Path, arguments: list[str], meant: str
) -> None:
    done = await InProcess(tmp_path / "none", tmp_path).attempt(*arguments)
    assert done.code == 2
    assert f"No such option {arguments[-2]!r}." in done.err
    assert ("Did you mean" in done.err) is bool(meant)
    assert meant in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pr", "show", "0"], "0 is not in the range from 1 up"),
        (["local", "up", "--port", "70000"], "70000 is not in the range from 0 to 65535"),
    ],
    ids=str,
)
async def test_a_range_is_said_in_words(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = await InProcess(tmp_path / "none", tmp_path).attempt(*arguments)
    assert (done.code, said in done.err) == (2, True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_a_shell_gets_a_script_that_completes(tmp_path: Path, shell: str) -> None:
    printed = await InProcess(tmp_path / "none", tmp_path)("completion", shell)
    assert "_KARDINAL_COMPLETE" in printed


COMPLETED = {
    "kardinal get steps ": ["my-app", "other"],
    "kardinal status my": ["my-app"],
    "kardinal promote my-app --env ": [DEV, STAGING, PROD],
    "kardinal get steps my-app --bundle ": ["my-app-1"],
    "kardinal create bundle my-app --target st": [STAGING],
    "kardinal history ot": ["other"],
    "kardinal diff my-app-1 my": ["my-app-1"],
}


async def test_names_are_completed_with_those_of_the_server(cli: Cli, world: World) -> None:
    await world.apply(pipeline(REPOSITORY), pipeline(REPOSITORY, name="other"), bundle("my-app-1"))
    for typed, offered in COMPLETED.items():
        cli.environment |= {
            "_KARDINAL_COMPLETE": "bash_complete",
            "COMP_WORDS": typed,
            "COMP_CWORD": str(len(typed.split(" ")) - 1),
        }
        assert [line.partition(",")[2] for line in (await cli()).splitlines()] == offered, typed


async def test_names_are_completed_in_every_shell_and_for_the_server_that_is_named(cli: Cli, world: World) -> None:
    await world.apply(pipeline(REPOSITORY))
    typed = f"kardinal status --kubeconfig {cli.environment.pop('KUBECONFIG')} -n {TEAM} "
    # fish gives the word under the cursor, the others its number.
    for shell, word in (("fish", ""), ("zsh", str(len(typed.split(" ")) - 1))):
        cli.environment |= {"_KARDINAL_COMPLETE": f"{shell}_complete", "COMP_WORDS": typed, "COMP_CWORD": word}
        assert "my-app" in (await cli()).replace(",", "\n").splitlines()


async def test_a_directory_is_printed_as_a_path_that_holds_anywhere(tmp_path: Path) -> None:
    done = await InProcess(tmp_path / "none", tmp_path).attempt("local", "status", "--dir", "some/where")
    assert f"kardinal local up --dir {tmp_path.resolve()}/some/where" in done.err


async def test_completion_without_a_server_offers_nothing_and_says_nothing(tmp_path: Path) -> None:
    cli = InProcess(tmp_path / "none", tmp_path)
    cli.environment |= {
        "_KARDINAL_COMPLETE": "bash_complete",
        "COMP_WORDS": "kardinal status ",
        "COMP_CWORD": "2",
    }
    done = await cli.attempt()
    assert (done.out.strip(), done.err) == ("", "")


async def test_a_plane_at_its_default_place_is_found_where_no_kubeconfig_is_chosen(cli: Cli, world: World) -> None:
    await world.apply(pipeline(REPOSITORY))
    kubeconfig = Path(cli.environment.pop("KUBECONFIG"))
    home = Path(cli.environment["HOME"])
    done = await cli.attempt("get", "pipelines")
    assert (done.code, "kardinal local up" in done.err) == (1, True)
    local = home / ".local" / "state" / "kardinal" / "local"
    local.mkdir(parents=True)
    kubeconfig.rename(local / "kubeconfig")
    assert "my-app" in await cli("get", "pipelines")
    # A kubeconfig of the user's own comes first.
    (home / ".kube").mkdir()
    (home / ".kube" / "config").write_text("apiVersion: v1\nkind: Config\n")
    assert (await cli.attempt("get", "pipelines")).code == 1


async def test_documents_leave_out_the_fields_of_managers(cli: Cli, world: World) -> None:
    await world.apply(pipeline(REPOSITORY), bundle("my-app-1"))
    for command in (("get", "bundles", "my-app"), ("get", "pipelines"), ("get", "steps", "my-app")):
        printed = await cli(*command, "-o", "yaml")
        assert yaml.safe_load(printed)["kind"] == "List"
        assert "managedFields" not in printed
    created = await cli("create", "bundle", "my-app", "--image", "ghcr.io/acme/my-app:1.0", "-o", "yaml")
    assert "managedFields" not in created
    assert (await cli("create", "bundle", "my-app", "--image", "ghcr.io/acme/my-app:1.0", "-o", "name")).startswith(
        "bundle.kardinal.io/my-app-1-0-"
    )


async def test_invalid_number_gets_a_clear_error(tmp_path: Path) -> None:
    done = await InProcess(tmp_path / "none", tmp_path).attempt("pr", "merge", "x")
    assert (done.code, "'x' is not a valid whole number." in done.err) == (2, True)
