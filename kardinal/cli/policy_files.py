"""`kardinal policy test` and `kardinal policy list`: the gates of a file, and those of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from kardinal import cel
from kardinal.cli.errors import CommandError
from kardinal.cli.files import read_file, read_input
from kardinal.cli.manifests import ManifestError, read_manifests
from kardinal.cli.output import one_line, print_table, print_value, say
from kardinal.cli.session import Session, cluster_command, output_option, policy_namespaces_option
from kardinal.kube import Forbidden
from kardinal.objects.text import escaped
from kardinal.promotion.api import PolicyGate
from kardinal.promotion.api.names import LABEL_TYPE, TYPE_GATE
from kardinal.promotion.kinds import POLICY_GATE
from kardinal.promotion.policy.calendar import zone_problem
from kardinal.promotion.policy.evaluate import fault
from kardinal.promotion.policy.matching import named_environments

__all__ = ["gates_of_file", "list_gates", "test_file"]


def gates_of_file(path: Path) -> list[PolicyGate]:
    """Return the PolicyGates of a file of manifests, or of standard input for `-`. Raises `CommandError`."""
    text = read_input() if path == Path("-") else read_file(path)
    kind = (POLICY_GATE.api_version, POLICY_GATE.kind)
    try:
        found = [PolicyGate.model_validate(each.body) for each in read_manifests(text) if each.kind == kind]
    except ManifestError as error:
        raise CommandError(f"{path} line {error.line}: {error}") from None
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        field = ".".join(map(str, wrong["loc"]))
        raise CommandError(f"{path}: {field}: {wrong['msg']}", remedy="kardinal lint -f says where.") from None
    if not found:
        raise CommandError(f"{path} has no PolicyGate")
    return found


@click.command("test")
@click.argument("path", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path, allow_dash=True))
@output_option
def test_file(*, path: Path, output: str) -> None:
    """Check the expressions of the PolicyGates in a file against what gates can read.

    Exits with 1 where one is wrong.
    """
    checked = [(gate, fault(gate.spec.expression) or zone_problem(gate.spec.time_zone)) for gate in gates_of_file(path)]
    if output == "table":
        rows = [
            [gate.metadata.name, "invalid" if problem else "valid", one_line(problem or ", ".join(_reads(gate)))]
            for gate, problem in checked
        ]
        print_table(["GATE", "EXPRESSION", "READS"], rows, empty="")
    else:
        listed = [
            {
                "name": gate.metadata.name,
                "valid": problem is None,
                "problem": problem,
                "reads": [] if problem else _reads(gate),
            }
            for gate, problem in checked
        ]
        print_value({"gates": listed}, output)
    if any(problem for _, problem in checked):
        raise click.exceptions.Exit(1)


@click.command("list")
@policy_namespaces_option
@output_option
@cluster_command
async def list_gates(session: Session, *, policy_namespaces: str, output: str) -> None:
    """List the gates of a namespace, with those of the organisation."""
    organisation = list(filter(None, map(str.strip, policy_namespaces.split(","))))
    found: list[PolicyGate] = []
    for namespace in dict.fromkeys([*organisation, session.namespace]):
        try:
            found += map(PolicyGate.model_validate, await session.reader.gates(namespace))
        except Forbidden:
            say(f"Note: you may not list the PolicyGates of {escaped(namespace)}.", err=True)
    documents = [_document(gate, organisation) for gate in found]
    if output != "table":
        print_value({"gates": documents}, output)
        return
    rows = [
        [
            each["namespace"],
            each["name"],
            each["scope"],
            each["type"],
            ", ".join(each["environments"]) or "all",
            each["state"],
            one_line(each["expression"]),
        ]
        for each in documents
    ]
    headers = ["NAMESPACE", "NAME", "SCOPE", "TYPE", "ENVIRONMENTS", "STATE", "EXPRESSION"]
    print_table(headers, [list(map(escaped, row)) for row in rows], empty="no gate is here", prose=["EXPRESSION"])


def _document(gate: PolicyGate, organisation: list[str]) -> dict[str, Any]:
    condition = gate.status.condition("Valid")
    return {
        "namespace": gate.metadata.namespace,
        "name": gate.metadata.name,
        "scope": "org" if gate.metadata.namespace in organisation else "team",
        "type": gate.metadata.labels.get(LABEL_TYPE, TYPE_GATE),
        "environments": sorted(named_environments(gate)),
        "state": condition.reason if condition is not None else "Unknown",
        "message": condition.message if condition is not None else "",
        "expression": gate.spec.expression,
        "timeZone": gate.spec.time_zone,
    }


def _reads(gate: PolicyGate) -> list[str]:
    return sorted(str(reference) for reference in cel.compile(gate.spec.expression).references)
