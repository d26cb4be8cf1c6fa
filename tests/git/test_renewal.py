"""Mirrors that have grown by too many packs are made anew, and what is under way in them comes to its end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kardinal.git import GitRunner, Landed, Repository, mirror
from kardinal.tree.edit import Edit, Tree
from tests.git.conftest import Git, message, setting, until

MARK = "mark"


class Slow:
    """An edit that takes until it is told to go on."""

    def __init__(self, edit: Edit) -> None:
        self._edit = edit
        self.made = 0
        self.go_on = threading.Event()

    def __call__(self, tree: Tree) -> object:
        self.made += 1
        assert self.go_on.wait(20)
        return self._edit(tree)


def marked(tmp_path: Path) -> Path:
    """Return a file put into the only mirror, which goes with it."""
    (found,) = (tmp_path / "cache").glob("*.git")
    (found / MARK).touch()
    return found / MARK


@asynccontextmanager
async def landing(remote: Repository) -> AsyncIterator[tuple[Slow, asyncio.Task[Landed]]]:
    """Begin to land a change, whose edit has read from the mirror."""
    edit = Slow(setting("dev", b"v2\n"))
    task = asyncio.create_task(remote.land("main", edit, message("dev")))  # type: ignore[arg-type]
    try:
        await until(lambda: edit.made > 0)
        yield edit, task
    finally:
        edit.go_on.set()
        await task


async def test_a_mirror_in_which_a_change_is_made_is_made_anew_afterwards(
    remote: Repository, bare: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await remote.head("main")
    mark = marked(tmp_path)
    monkeypatch.setattr(mirror, "_MAX_PACKS", 0.5)
    async with landing(remote) as (edit, task):
        await remote.head("main")
        assert mark.exists()
        edit.go_on.set()
        landed = await task
    assert bare("rev-parse", "main") == landed.commit
    assert (edit.made, mark.exists()) == (1, True)
    await remote.head("main")
    assert not mark.exists()


async def test_a_change_is_made_again_where_its_mirror_could_wait_no_longer(
    remote: Repository, runner: GitRunner, bare: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await remote.head("main")
    mark = marked(tmp_path)
    gone = threading.Event()
    released = threading.Event()
    create = mirror.MirrorBackend._create_or_open

    def create_slowly(backend: mirror.MirrorBackend) -> None:
        gone.set()
        assert released.wait(20)
        create(backend)

    async with landing(remote) as (edit, task):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(mirror, "_MAX_PACKS", 0.1)
            monkeypatch.setattr(mirror.MirrorBackend, "_create_or_open", create_slowly)
            looking = asyncio.create_task(remote.head("main"))
            await until(gone.is_set)
        assert not mark.exists()
        edit.go_on.set()
        await until(lambda: runner.busy == 1)
        released.set()
        await looking
        again = marked(tmp_path)
        landed = await task
    assert bare("rev-parse", "main") == landed.commit
    assert bare("rev-list", "--count", "main") == "2"
    assert (edit.made, again.exists()) == (2, True), "made again, in the mirror that was made anew once"
