"""Stand in for Flux's source-controller: serve the newest commit of the branch of each GitRepository.

    python -m hack.standins.source --kubeconfig FILE --namespace NAMESPACE --repositories DIR

`spec.url` is a bare repository below DIR, `spec.ref.branch` defaults to main. Status is as Flux has it:
`artifact {url, revision: main@sha1:HEX, digest}` and the condition Ready.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import click
from aiohttp import web

from hack.standins.program import POLL, options, run_standin, with_condition
from kardinal.objects import JsonObject
from kardinal.runtime.process import run

__all__ = ["Sources"]

GIT_SECONDS = 20.0


class _GitFailed(Exception):
    pass


class Sources:
    """The archives of all commits that were found since the start, which are served over HTTP on loopback."""

    def __init__(self, repositories: Path) -> None:
        self._repositories = repositories.resolve()
        self._archives: dict[str, bytes] = {}
        self._commits: dict[tuple[Path, str], str] = {}
        """The path of the archive by repository and commit."""
        self._url = ""

    async def serve(self) -> Sources:
        """Start to serve the archives."""
        application = web.Application()
        application.router.add_get("/{name}", self._answer)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        self._url = f"http://{host}:{port}"
        return self

    async def status_of(self, obj: JsonObject) -> tuple[JsonObject, timedelta | None]:
        """Return the status with the newest commit."""
        spec = obj["spec"]
        branch = (spec.get("ref") or {}).get("branch") or "main"
        try:
            repository = self._repository(str(spec.get("url", "")))
            commit = (await _git(repository, "rev-parse", "--verify", f"refs/heads/{branch}")).decode().strip()
            name = await self._archived(repository, commit)
        except _GitFailed as error:
            return with_condition(obj, "Ready", "False", "GitOperationFailed", str(error)), POLL
        revision = f"{branch}@sha1:{commit}"
        digest = f"sha256:{name.partition('.')[0]}"
        artifact = {"url": f"{self._url}/{name}", "path": name, "revision": revision, "digest": digest}
        status = with_condition(obj, "Ready", "True", "Succeeded", f"stored artifact for revision '{revision}'")
        return {**status, "artifact": artifact}, POLL

    def _repository(self, url: str) -> Path:
        path = Path(urlsplit(url).path).resolve()
        if not path.is_relative_to(self._repositories) or not path.is_dir():
            raise _GitFailed(f"no repository {url} below the directory of this stand-in")
        return path

    async def _archived(self, repository: Path, commit: str) -> str:
        name = self._commits.get((repository, commit))
        if name is None:
            tar = await _git(repository, "archive", "--format=tar", commit)
            # Without a time, so that the same files are the same bytes.
            archive = await asyncio.to_thread(gzip.compress, tar, mtime=0)
            name = f"{hashlib.sha256(archive).hexdigest()}.tar.gz"
            self._archives[name] = archive
            self._commits[repository, commit] = name
        return name

    async def _answer(self, request: web.Request) -> web.Response:
        archive = self._archives.get(request.match_info["name"])
        return web.Response(status=404) if archive is None else web.Response(body=archive)


async def _git(repository: Path, *arguments: str) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *("git", "-C", str(repository), *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        output, said = await asyncio.wait_for(process.communicate(), GIT_SECONDS)
    except TimeoutError:
        process.kill()
        raise _GitFailed(f"git {arguments[0]} takes more than {GIT_SECONDS:.0f} s") from None
    if process.returncode:
        raise _GitFailed(f"git {arguments[0]}: {said.decode(errors='replace').strip()[:200]}")
    return output


@click.command()
@options
@click.option("--repositories", required=True, type=click.Path(exists=True, path_type=Path), help="Their directory.")
def main(*, kubeconfig: Path, namespace: str, repositories: Path) -> None:
    """Stand in for a source-controller."""
    run(run_standin("source", kubeconfig, namespace, Sources(repositories).serve))


if __name__ == "__main__":
    main()
