"""Render the environments of one commit: by kustomize or kubectl where installed, else by the small reader."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

import yaml

from kardinal.git import GitRunner, Repository
from kardinal.objects import JsonObject
from kardinal.steps.edit import EditError
from kardinal_local.simulator.exports import Export, Exports
from kardinal_local.simulator.inputs import Inputs
from kardinal_local.simulator.kustomization import Rendered, RenderError, render

__all__ = ["BuiltInRenderer", "KustomizeRenderer", "Renderer", "Rendering", "find_renderer"]

DEADLINE = 30.0
"""Seconds a rendering program may take."""
_TEXT_LIMIT = 800
"""Characters of what a rendering program says; an Event takes 1 KiB."""
_LOG_HEAD = re.compile(
    r"^(?:[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [^\s\]]+\] ?|\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d+)? )", re.MULTILINE
)
"""When, in which process and at which line of code something was logged, as kubectl and kustomize write it."""
_CLONE = re.compile(r"[^\s'\"]*/kustomize-\d+")
"""The directory into which kustomize fetches; another name each time."""


class Rendering(Protocol):
    """One commit that is being rendered."""

    async def render(self, path: str, inputs: Inputs | None) -> Rendered:
        """Return the objects of directory `path`, which reads `inputs` (None: not known). Raises `RenderError`."""
        ...


class Renderer(Protocol):
    """Renders directories to objects."""

    def at(self, repository: Repository, commit: str) -> AbstractAsyncContextManager[Rendering]:
        """Render from `commit`; what that needs is there until the block ends."""
        ...


class BuiltInRenderer:
    """Knows resources, namespace and images, and says what else it met."""

    @asynccontextmanager
    async def at(self, repository: Repository, commit: str) -> AsyncIterator[Rendering]:
        yield _BuiltIn(repository, commit)


class _BuiltIn:
    def __init__(self, repository: Repository, commit: str) -> None:
        self._repository = repository
        self._commit = commit

    async def render(self, path: str, inputs: Inputs | None) -> Rendered:
        try:
            return await self._repository.inspect(self._commit, lambda tree: render(tree, path))
        except EditError as error:
            raise RenderError(str(error)) from error


class KustomizeRenderer:
    """Runs a program that prints what a directory renders to, as often at once as there are cores."""

    def __init__(self, command: Sequence[str], *, exports: Exports, runner: GitRunner) -> None:
        self._command = tuple(command)
        self._exports = exports
        self._runner = runner
        self._turns = asyncio.Semaphore(os.cpu_count() or 1)

    @asynccontextmanager
    async def at(self, repository: Repository, commit: str) -> AsyncIterator[Rendering]:
        async with self._exports.open(repository, commit) as export:
            yield _Kustomize(self, export)

    async def run(self, export: Export, path: str, inputs: Inputs | None) -> Rendered:
        """Render one directory of an export."""
        async with self._turns:
            await export.fill(inputs)
            output = await self._run(export, path)
        return Rendered(objects=await self._runner.run(_parse, output))

    async def _run(self, export: Export, path: str) -> bytes:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            str(export.root / path),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            # What it fetches goes when the export goes, even if it is killed.
            env={**os.environ, "TMPDIR": str(export.scratch)},
        )
        try:
            async with asyncio.timeout(DEADLINE):
                output, errors = await process.communicate()
        except TimeoutError:
            raise RenderError(f"{path}: {Path(self._command[0]).name} did not finish within {DEADLINE:.0f} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise RenderError(f"{path}: {_stable(errors.decode(errors='replace'), root=export.root)}")
        return output


class _Kustomize:
    def __init__(self, renderer: KustomizeRenderer, export: Export) -> None:
        self._renderer = renderer
        self._export = export

    async def render(self, path: str, inputs: Inputs | None) -> Rendered:
        return await self._renderer.run(self._export, path, inputs)


async def find_renderer(runner: GitRunner, directory: Path) -> Renderer:
    """Find the best renderer of this machine; `directory` is for its temporary files alone."""
    # A program that resolves links says the real path, which is then the one to take out of what it says.
    exports = Exports(Path(await runner.run(os.path.realpath, directory)), runner=runner)
    await exports.sweep()
    if kustomize := await runner.run(shutil.which, "kustomize"):
        return KustomizeRenderer([kustomize, "build"], exports=exports, runner=runner)
    if kubectl := await runner.run(shutil.which, "kubectl"):
        return KustomizeRenderer([kubectl, "kustomize"], exports=exports, runner=runner)
    return BuiltInRenderer()


def _stable(text: str, *, root: Path) -> str:
    """Return what a program says about `root`, the same every time.

    Without moments, process ids and temporary paths.
    """
    text = _CLONE.sub("(fetched)", _LOG_HEAD.sub("", text))
    text = text.replace(f"{root}/", "").replace(str(root), ".")
    return " ".join(text.split())[:_TEXT_LIMIT]


def _parse(output: bytes) -> list[JsonObject]:
    return [document for document in yaml.load_all(output, Loader=yaml.CSafeLoader) if document]
