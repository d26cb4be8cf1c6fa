"""Compare two Bundles: their artifacts, their provenance, and the commits between them (pure)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from kardinal.objects.conditions import format_time
from kardinal.objects.image_reference import ImageReferenceError
from kardinal.promotion.api import Bundle
from kardinal.promotion.api.bundle import Artifacts, Image, Provenance
from kardinal.promotion.api.image import promoted_image

__all__ = ["CommitRange", "Difference", "commit_page", "commit_ranges", "differences"]

T = TypeVar("T")

_COMMIT = re.compile(r"[0-9a-f]{7,64}")

_RUNS = re.compile(r"(https://[A-Za-z0-9.:-]+(?:/[A-Za-z0-9._~-]+){2,20}?)/(actions/runs|-/pipelines|-/jobs)/[0-9]+")
"""Matches the URL of a CI run of GitHub, Gitea or GitLab, such as `https://github.com/acme/shop/actions/runs/12`.

The first group is the repository, the second one tells GitHub and Gitea from GitLab.
"""


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that differs, for example `Difference("image", "ghcr.io/acme/shop", "v1", "v2")`.

    An empty string means that the Bundle has no such value.
    """

    kind: str
    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class CommitRange:
    """The commits after `before` up to and including `after`.

    `url` is the page of the host that compares the commits, for example
    `https://github.com/acme/shop/compare/1f3a…...9b2c…`; it is empty if the host is not known.
    """

    repository: str
    before: str
    after: str
    url: str = ""


def differences(before: Bundle, after: Bundle) -> list[Difference]:
    """Return the images, charts, configuration and provenance in which the Bundles differ."""
    old = before.spec.artifacts
    new = after.spec.artifacts
    found = [
        *_paired("image", _images(old), _images(new)),
        *_paired("chart", _charts(old), _charts(new)),
        *_paired("configuration", _configuration(old), _configuration(new)),
        *_paired("provenance", _provenance(before), _provenance(after)),
    ]
    return [difference for difference in found if difference.before != difference.after]


def commit_ranges(before: Bundle, after: Bundle) -> Iterator[CommitRange]:
    """Yield the commits between two Bundles: of the source of the artifacts, and of their configuration.

    The source commits are `provenance.commitSHA`, and are ignored unless they have the format of a commit SHA. Their
    repository is taken from `provenance.ciRunURL`.
    """
    old = before.spec.provenance or Provenance()
    new = after.spec.provenance or Provenance()
    if _differ(old.commit_sha, new.commit_sha):
        sources = [_source(each.ci_run_url) for each in (old, new)]
        repository, compare = sources[1] or sources[0] or ("", "")
        same = None in sources or sources[0] == sources[1]
        yield _range(repository if same else "", compare, old.commit_sha, new.commit_sha)
    here = before.spec.artifacts.git_commit
    there = after.spec.artifacts.git_commit
    if here is not None and there is not None and here.repository == there.repository and _differ(here.sha, there.sha):
        yield _range(there.repository, "", here.sha, there.sha)


def commit_page(run: str | None, commit: str | None) -> str:
    """Return the page of the host about the source commit of a Bundle; empty if the host is not known.

    The repository is taken from the URL of the CI run: `https://github.com/acme/shop/commit/1f3a…`.
    """
    source = _source(run)
    if source is None or not _COMMIT.fullmatch(commit or ""):
        return ""
    repository, compare = source
    return f"{repository}/{compare.replace('compare', 'commit')}/{commit}"


def _range(repository: str, compare: str, before: str | None, after: str | None) -> CommitRange:
    url = f"{repository}/{compare}/{before}...{after}" if repository and compare else ""
    return CommitRange(repository, before or "", after or "", url)


def _differ(before: str | None, after: str | None) -> bool:
    return before != after and all(_COMMIT.fullmatch(each or "") for each in (before, after))


def _source(run: str | None) -> tuple[str, str] | None:
    """Return the URL of the repository of a CI run, and the path at that host that compares commits.

    `https://github.com/acme/shop/actions/runs/12` → `("https://github.com/acme/shop", "compare")`.
    """
    found = _RUNS.fullmatch(run or "")
    if found is None:
        return None
    return found[1], "compare" if found[2].startswith("actions") else "-/compare"


def _paired(kind: str, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Difference]:
    for name in dict.fromkeys([*before, *after]):
        yield Difference(kind, name, before.get(name, ""), after.get(name, ""))


def _images(artifacts: Artifacts) -> dict[str, str]:
    return _by_name(artifacts.images, _image)


def _image(image: Image) -> tuple[str, str]:
    """Return repository and version of an image: `("ghcr.io/acme/shop", "v1@sha256:…")`.

    An invalid reference is returned unchanged.
    """
    try:
        found = promoted_image(image)
    except ImageReferenceError:
        return image.reference, image.digest or image.reference
    return found.canonical, "@".join(filter(None, (found.tag, found.digest)))


def _charts(artifacts: Artifacts) -> dict[str, str]:
    return _by_name(
        artifacts.charts,
        lambda chart: (f"{chart.repository} {chart.name}", "@".join(filter(None, (chart.version, chart.digest)))),
    )


def _configuration(artifacts: Artifacts) -> dict[str, str]:
    commit = artifacts.git_commit
    return {f"{commit.repository} {commit.path or ''}".rstrip(): commit.sha} if commit is not None else {}


def _provenance(bundle: Bundle) -> dict[str, str]:
    found = bundle.spec.provenance or Provenance()
    built = format_time(found.build_timestamp) if found.build_timestamp is not None else None
    fields = {"commit": found.commit_sha, "author": found.author, "CI run": found.ci_run_url, "built": built}
    return {name: value for name, value in fields.items() if value}


def _by_name(items: Iterable[T], shown: Callable[[T], tuple[str, str]]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for name, version in map(shown, items):
        found.setdefault(name, []).append(version)
    return {name: ", ".join(versions) for name, versions in found.items()}
