"""A repository on this machine whose hooks would not run is not changed behind them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kardinal.git import GitRunner, PushRejected, Repositories, Repository
from tests.git.conftest import Git, message, setting
from tests.git.test_remote import hook
from tests.support.clock import VirtualClock

HOOKS = ("pre-receive", "update", "proc-receive", "post-receive", "post-update", "reference-transaction")
REFUSING = "echo 'main is protected' >&2; exit 1"


@pytest.mark.parametrize("name", HOOKS)
async def test_a_repository_with_a_hook_of_pushes_is_not_changed(repository: Repository, bare: Git, name: str) -> None:
    hook(bare, name, REFUSING)
    before = bare("rev-parse", "main")
    with pytest.raises(PushRejected, match=f"hooks that a promotion would bypass: {name} in ") as caught:
        await repository.land("main", setting("dev", b"v2\n"), message("dev"))
    assert "--allow-bypassing-hooks" in caught.value.remedy
    assert bare("rev-parse", "main") == before


async def test_a_proposal_and_a_check_are_refused_as_well(repository: Repository, bare: Git) -> None:
    hook(bare, "pre-receive", REFUSING)
    with pytest.raises(PushRejected, match="pre-receive"):
        await repository.check_push("main")
    with pytest.raises(PushRejected, match="pre-receive"):
        await repository.propose(
            "kardinal/app-1/dev", base="main", edit=setting("dev", b"v2\n"), message=message("dev")
        )
    assert bare("for-each-ref", "--format=%(refname)", "refs/heads") == "refs/heads/main"


@pytest.mark.parametrize("relative", [True, False])
async def test_hooks_are_found_where_the_repository_says(
    repository: Repository, bare: Git, tmp_path: Path, *, relative: bool
) -> None:
    directory = bare.directory / "elsewhere" if relative else tmp_path / "hooks"
    directory.mkdir()
    bare("config", "core.hooksPath", "elsewhere" if relative else str(directory))
    # Those in the usual place do not run then.
    hook(bare, "update", REFUSING)
    assert (await repository.land("main", setting("dev", b"v2\n"), message("dev"))).changed
    (directory / "update").write_text(f"#!/bin/sh\n{REFUSING}\n")
    (directory / "update").chmod(0o755)
    with pytest.raises(PushRejected, match=f"update in {directory}"):
        await repository.land("main", setting("dev", b"v3\n"), message("dev", "app-2"))


async def test_hooks_that_a_push_does_not_run_do_not_matter(repository: Repository, bare: Git) -> None:
    hook(bare, "pre-commit", REFUSING)
    hook(bare, "pre-receive", REFUSING)
    (bare.directory / "hooks" / "pre-receive").chmod(0o644)
    hook(bare, "update.sample", REFUSING)
    assert (await repository.land("main", setting("dev", b"v2\n"), message("dev"))).changed


async def test_a_program_that_may_bypass_hooks_does(
    tmp_path: Path, runner: GitRunner, clock: VirtualClock, bare: Git
) -> None:
    hook(bare, "pre-receive", REFUSING)
    repositories = Repositories(
        tmp_path / "cache", runner=runner, clock=clock, allow_local=True, allow_bypassing_hooks=True
    )
    try:
        repository = repositories.open(str(bare.directory))
        assert (await repository.land("main", setting("dev", b"v2\n"), message("dev"))).changed
    finally:
        await repositories.close()
