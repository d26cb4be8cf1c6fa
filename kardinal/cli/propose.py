"""`kardinal init --from`: read a repository, and print Pipelines for its applications with the guesses made."""

from __future__ import annotations

import asyncio
import re
import tempfile
from pathlib import Path

import yaml

from kardinal.cli.checkout import ask_git, open_checkout
from kardinal.cli.errors import CommandError
from kardinal.cli.guesses import provider_of
from kardinal.cli.output import say
from kardinal.cli.scan import Origin, PipelineDraft, propose
from kardinal.git.checkouts import Checkout
from kardinal.objects.errors import KardinalError
from kardinal.objects.text import escaped
from kardinal.tree.repository_url import InvalidRepositoryURL, RepositoryURL

__all__ = ["print_proposals"]


_SHORT_SSH = re.compile(r"[\w.-]+@[\w.-]+:(?!//)")
"""The beginning of `git@github.com:acme/gitops`, which is a URL and no local path."""


def print_proposals(source: str, namespace: str) -> None:
    """Print a Pipeline for each application of a repository, and the guesses on standard error.

    `source` is the URL or the local directory of the repository. Raises `CommandError` if no application is found.
    """
    try:
        proposals = asyncio.run(_proposals(source, namespace))
    except KardinalError as error:
        raise CommandError(str(error)) from None
    if not proposals:
        raise CommandError(
            f"{source} has no kustomization that stands for an environment",
            remedy="Write the Pipeline by hand: kardinal init -f kardinal.yaml, or docs/guides/helm.md for Helm values",
        )
    say("---\n".join(_yaml(proposal) for proposal in proposals), nl=False)
    for proposal in proposals:
        say(f"Pipeline {proposal.name}:", err=True)
        for title, lines in (("guessed", proposal.guessed), ("not known", proposal.unknown)):
            for line in lines:
                say(f"  {title}: {escaped(line)}", err=True)
    first = proposals[0]
    image = first.images[0] if first.images else "REPOSITORY"
    say("\nNext, when it reads right in a file pipeline.yaml:", err=True)
    say("  kardinal lint -f pipeline.yaml && kubectl apply -f pipeline.yaml", err=True)
    say(f"  kardinal plan {first.name} --image {escaped(image)}:TAG", err=True)


def _directory(source: str) -> Path:
    directory = Path(source.removeprefix("file://")).expanduser().resolve()
    if not directory.is_dir():
        raise CommandError(f"there is no directory {directory}")
    return directory


async def _proposals(source: str, namespace: str) -> list[PipelineDraft]:
    if source.startswith("file://") or ("://" not in source and not _SHORT_SSH.match(source)):
        directory = await asyncio.to_thread(_directory, source)
        return await _read(directory, namespace, url=None)
    try:
        RepositoryURL.parse(source, allow_local=False)
    except InvalidRepositoryURL as error:
        raise CommandError(f"{escaped(source)}: {error.message}") from None
    with tempfile.TemporaryDirectory(prefix="kardinal-init-") as copy:
        await ask_git("clone", "--quiet", "--bare", "--depth=1", "--end-of-options", source, copy)
        return await _read(Path(copy), namespace, url=source)


async def _read(directory: Path, namespace: str, *, url: str | None) -> list[PipelineDraft]:
    """Return the proposals for the commit that is checked out in a directory.

    The Pipelines have the repository `url`; defaults to the remote `origin` of the clone, else to the directory itself.
    """
    async with open_checkout(directory) as (repository, checkout):
        named = url or _origin_of(checkout) or directory.as_uri()
        origin = Origin(named, checkout.branch or "main", provider_of(named), namespace)
        return await repository.inspect(checkout.commit, lambda tree: propose(tree, origin))


def _origin_of(checkout: Checkout) -> str:
    """Return the URL of the remote `origin`; empty for a bare repository, without the remote, or for an invalid URL."""
    if checkout.bare:
        return ""
    listed = checkout.remotes.get("origin", "")
    try:
        RepositoryURL.parse(listed, allow_local=True)
    except InvalidRepositoryURL:
        return ""
    return listed


def _yaml(proposal: PipelineDraft) -> str:
    return yaml.dump(proposal.manifest, Dumper=yaml.CSafeDumper, sort_keys=False)
