"""List the gates that bind each path that Pipelines write to, from the objects that the reader may read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from kardinal.kube import Forbidden
from kardinal.objects import JsonObject
from kardinal.promotion.api import Pipeline, PolicyGate
from kardinal.promotion.policy.coverage import CoveredPath, coverage
from kardinal.promotion.views.reader import Reader
from kardinal.tree.repository_url import InvalidRepositoryURL, repository_key

__all__ = ["CoverageView", "read_coverage"]


@dataclass(frozen=True, slots=True)
class CoverageView:
    """The paths with their gates, and notes about objects that could not be read and invalid repository URLs."""

    paths: Sequence[CoveredPath]
    notes: Sequence[str]


async def read_coverage(
    reader: Reader, namespace: str, *, everywhere: bool, policy_namespaces: Collection[str]
) -> CoverageView:
    """Return the coverage of `namespace`, or with `everywhere` of all namespaces.

    If the reader may not list the Pipelines of all namespaces, the view has those of `namespace` and a note. Org gates
    are read from `policy_namespaces`.
    """
    notes: list[str] = []
    pipelines, everywhere = await _pipelines(reader, namespace, notes, everywhere=everywhere)
    namespaces = sorted({*policy_namespaces, *(pipeline.metadata.namespace for pipeline in pipelines)})
    gates = await _gates(reader, namespaces, notes, everywhere=everywhere)
    paths = coverage(_valid(pipelines, notes), gates, policy_namespaces=policy_namespaces)
    return CoverageView(paths, notes)


async def _pipelines(
    reader: Reader, namespace: str, notes: list[str], *, everywhere: bool
) -> tuple[list[Pipeline], bool]:
    """Return the Pipelines that can be read, and True if they are of all namespaces."""
    if everywhere:
        try:
            return [Pipeline.model_validate(item) for item in await reader.pipelines()], True
        except Forbidden:
            notes.append(f"you may not list the Pipelines of all namespaces, so these are of {namespace}")
    return [Pipeline.model_validate(item) for item in await reader.pipelines(namespace)], False


async def _gates(reader: Reader, namespaces: Sequence[str], notes: list[str], *, everywhere: bool) -> list[PolicyGate]:
    """Return the gate templates that can be read: of all namespaces with `everywhere`, else of `namespaces`."""
    found: list[JsonObject] = []
    if everywhere:
        try:
            found += await reader.gates()
        except Forbidden:
            everywhere = False
    if not everywhere:
        for namespace in namespaces:
            try:
                found += await reader.gates(namespace)
            except Forbidden:
                notes.append(f"you may not list the PolicyGates of {namespace}: any of them are missing here")
    return [PolicyGate.model_validate(item) for item in found]


def _valid(pipelines: Iterable[Pipeline], notes: list[str]) -> list[Pipeline]:
    """Return the Pipelines with a valid repository URL, and add a note about each other one."""
    found = []
    for pipeline in pipelines:
        try:
            repository_key(pipeline.spec.git.url)
        except InvalidRepositoryURL as error:
            metadata = pipeline.metadata
            notes.append(f"Pipeline {metadata.namespace}/{metadata.name} writes to nothing: {error.message}")
        else:
            found.append(pipeline)
    return found
