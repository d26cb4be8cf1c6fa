"""`kardinal policy`: what gates hold, with the paths that they bind and the paths that no gate binds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import click

from kardinal.cli.output import print_table, print_value, say
from kardinal.cli.policy_files import list_gates, test_file
from kardinal.cli.policy_simulation import replay, simulate
from kardinal.cli.session import Session, cluster_command, output_option, policy_namespaces_option
from kardinal.objects.text import escaped
from kardinal.promotion.policy.coverage import CoveredPath, Writer
from kardinal.promotion.views.coverage import read_coverage

__all__ = ["policy"]

_NO_PIPELINES = "no Pipeline writes to anything here; create one: kardinal init -f kardinal.yaml"


@click.group()
def policy() -> None:
    """Show what gates hold, and what they would say."""


for command in (list_gates, test_file, simulate, replay):
    policy.add_command(command)


@policy.command("coverage")
@policy_namespaces_option
@output_option
@cluster_command
async def show_coverage(session: Session, *, policy_namespaces: str, output: str) -> None:
    """List each path that Pipelines write to with the gates that bind it, and the paths bound by none.

    Without -n of all namespaces, or of the context's where you may not read all. What cannot be read is named.
    """
    organisation = tuple(filter(None, map(str.strip, policy_namespaces.split(","))))
    found = await read_coverage(
        session.reader, session.namespace, everywhere=not session.chosen, policy_namespaces=organisation
    )
    if output != "table":
        print_value({"paths": [_document(path) for path in found.paths], "notes": list(found.notes)}, output)
        return
    _print(found.paths)
    for note in found.notes:
        say(f"Note: {escaped(note)}.", err=True)


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
