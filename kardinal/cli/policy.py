"""`kardinal policy`: what the gates of a cluster hold, and what they do not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import click

from kardinal.api import PIPELINE, POLICY_GATE, Pipeline, PolicyGate
from kardinal.api.names import LABEL_BUNDLE
from kardinal.api.repository_url import InvalidRepositoryURL, repository_key
from kardinal.cli.output import print_table, print_value, say
from kardinal.cli.session import Session, cluster_command, output_option
from kardinal.kube import Forbidden
from kardinal.objects import JsonObject
from kardinal.objects.text import escaped
from kardinal.policy.coverage import CoveredPath, Writer, coverage

__all__ = ["policy"]

_NO_PIPELINES = "no Pipeline writes to anything here; create one: kardinal init -f kardinal.yaml"


@click.group()
def policy() -> None:
    """Show what gates hold."""


@policy.command("coverage")
@click.option(
    "--policy-namespaces",
    default="platform-policies",
    show_default=True,
    help="Where org gates live, with commas between; what the controller was started with.",
)
@output_option
@cluster_command
async def show_coverage(session: Session, *, policy_namespaces: str, output: str) -> None:
    """List each path that Pipelines write to with the gates that bind it, and the paths bound by none.

    Without -n of all namespaces, or of the context's where you may not read all. What cannot be read is named.
    """
    organisation = tuple(filter(None, map(str.strip, policy_namespaces.split(","))))
    notes: list[str] = []
    pipelines, everywhere = await _pipelines(session, notes)
    namespaces = {*organisation, *(pipeline.metadata.namespace for pipeline in pipelines)}
    gates = await _gates(session, sorted(namespaces), notes, everywhere=everywhere)
    found = coverage(_valid(pipelines, notes), gates, policy_namespaces=organisation)
    if output != "table":
        print_value({"paths": [_document(path) for path in found], "notes": notes}, output)
        return
    _print(found)
    for note in notes:
        say(f"Note: {escaped(note)}.", err=True)


async def _pipelines(session: Session, notes: list[str]) -> tuple[list[Pipeline], bool]:
    """Return the Pipelines that can be read, and whether they are those of all namespaces."""
    if not session.chosen:
        try:
            return [Pipeline.model_validate(item) for item in (await session.client.list(PIPELINE)).items], True
        except Forbidden:
            notes.append(f"you may not list the Pipelines of all namespaces, so these are of {session.namespace}")
    found = await session.client.list(PIPELINE, session.namespace)
    return [Pipeline.model_validate(item) for item in found.items], False


async def _gates(
    session: Session, namespaces: Sequence[str], notes: list[str], *, everywhere: bool
) -> list[PolicyGate]:
    """Return the gate templates of these namespaces that can be read."""
    templates = f"!{LABEL_BUNDLE}"
    found: list[JsonObject] = []
    if everywhere:
        try:
            found = (await session.client.list(POLICY_GATE, labels=templates)).items
        except Forbidden:
            everywhere = False
    if not everywhere:
        for namespace in namespaces:
            try:
                found += (await session.client.list(POLICY_GATE, namespace, labels=templates)).items
            except Forbidden:
                notes.append(f"you may not list the PolicyGates of {namespace}: any of them are missing here")
    return [PolicyGate.model_validate(item) for item in found]


def _valid(pipelines: Iterable[Pipeline], notes: list[str]) -> list[Pipeline]:
    """Return the Pipelines whose repository can be compared; the others write to nothing."""
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


def _document(path: CoveredPath) -> dict[str, Any]:
    return {
        "repository": path.repository,
        "branch": path.branch,
        "path": path.path,
        "bound": path.is_bound,
        "writers": [
            {
                "namespace": writer.namespace,
                "pipeline": writer.pipeline,
                "environment": writer.environment,
                "gates": [
                    {"scope": gate.scope, "namespace": gate.namespace, "name": gate.name} for gate in writer.gates
                ],
            }
            for writer in path.writers
        ],
    }


def _print(paths: Sequence[CoveredPath]) -> None:
    if not paths:
        say(_NO_PIPELINES, err=True)
        return
    for (repository, branch), group in groupby(paths, key=lambda path: (path.repository, path.branch)):
        say(f"{escaped(repository)}, branch {escaped(branch)}\n")
        rows = [_row(path.path, writer) for path in group for writer in path.writers]
        print_table(["PATH", "WRITTEN BY", "GATES"], rows, empty="")
        say()
    unbound = sum(not path.is_bound for path in paths)
    say(f"{unbound} of {len(paths)} paths can be written to without a gate." if unbound else "Gates bind every path.")


def _row(path: str, writer: Writer) -> list[str]:
    gates = [f"{gate.namespace}/{gate.name}" for gate in writer.gates] or ["none"]
    lines = [path], [f"{writer.namespace}/{writer.pipeline}", writer.environment], gates
    return ["\n".join(map(escaped, cell)) for cell in lines]
