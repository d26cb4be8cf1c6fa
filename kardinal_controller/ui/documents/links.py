"""Links to pages of Git hosts and CI systems.

Every URL comes from a custom resource, so that its author chose it: only absolute URLs with the scheme http or https,
without user or password and without characters that could end an attribute, become links. All else stays text.
"""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

from kardinal.promotion.api import Bundle
from kardinal.promotion.api.bundle import Provenance
from kardinal.promotion.api.pipeline import Git
from kardinal.promotion.views.differences import commit_page
from kardinal_controller.ui.model import Link

__all__ = [
    "application_link",
    "ci_run_link",
    "commit_link",
    "pull_request_link",
    "repository_link",
    "source_link",
    "web_url",
]

_URL = re.compile(r"https?://[^\s\x00-\x20\x7f-\x9f\"'<>`\\]{1,2048}")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_SHORT = 7

_COMMITS = {"github": "commit", "gitlab": "-/commit", "gitea": "commit", "forgejo": "commit"}
"""The path of the page of a commit, below that of its repository, by provider."""


def web_url(url: str | None) -> str | None:
    """Return `url` if a page may link to it, else None."""
    if url is None or not url.isascii() or not _URL.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return url if parts.hostname and "@" not in parts.netloc else None


def repository_link(git: Git) -> Link:
    """Return the repository of a Pipeline: `git.example.com/shop/env`, with the page of its host if that is known."""
    page = _repository_page(git)
    text = re.sub(r"^[a-z+]+://", "", git.url)
    text = re.sub(r"^[^/]*@", "", text).removesuffix(".git")
    return Link(text=text, url=page)


def commit_link(git: Git, commit: str | None) -> Link | None:
    """Return a commit of the repository of a Pipeline, with its page where the provider is known."""
    if not commit:
        return None
    page = _repository_page(git)
    path = _COMMITS.get(git.provider)
    known = page is not None and path is not None and _COMMIT.fullmatch(commit)
    return Link(text=_short(commit), url=f"{page}/{path}/{commit}" if known else None)


def source_link(bundle: Bundle) -> Link | None:
    """Return the commit that the artifacts of a Bundle were built from, or its configuration commit."""
    provenance = bundle.spec.provenance or Provenance()
    configuration = bundle.spec.artifacts.git_commit
    commit = provenance.commit_sha or (configuration.sha if configuration is not None else None)
    if not commit:
        return None
    return Link(text=_short(commit), url=web_url(commit_page(provenance.ci_run_url, provenance.commit_sha)))


def ci_run_link(bundle: Bundle) -> Link | None:
    """Return the CI run that built a Bundle."""
    run = (bundle.spec.provenance or Provenance()).ci_run_url
    return Link(text="CI run", url=web_url(run)) if run else None


def pull_request_link(url: str | None, number: int | None = None) -> Link | None:
    """Return a pull request: `#812`, or the number at the end of its URL."""
    if not url:
        return None
    last = url.rstrip("/").rpartition("/")[2]
    text = f"#{number}" if number is not None else f"#{last}" if last.isdecimal() else "pull request"
    return Link(text=text, url=web_url(url))


def application_link(argocd: str, namespace: str, name: str) -> Link:
    """Return an Application of Argo CD, with its page below the address of Argo CD if that is known."""
    page = f"{argocd}/applications/{quote(namespace, safe='')}/{quote(name, safe='')}" if argocd else None
    return Link(text=f"Application {namespace}/{name}", url=web_url(page))


def _repository_page(git: Git) -> str | None:
    return web_url(git.url.removesuffix("/").removesuffix(".git")) if git.provider in _COMMITS else None


def _short(commit: str) -> str:
    return commit[:_SHORT] if _COMMIT.fullmatch(commit) else commit
