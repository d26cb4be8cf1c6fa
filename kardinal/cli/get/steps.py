"""`kardinal get steps`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import click

from kardinal.api.image import bundle_versions
from kardinal.api.names import LABEL_BUNDLE, label_value
from kardinal.cli.environments import EnvironmentState
from kardinal.cli.gates import GateLine
from kardinal.cli.output import one_line, print_documents, print_table, say, state_text
from kardinal.cli.render_failures import render_failure, render_failures
from kardinal.cli.session import TABLES, Session, cluster_command, no_bundle, table_option
from kardinal.cli.status.reading import read_objects
from kardinal.cli.status.view import promotion_states, unattended
from kardinal.objects import BUNDLE, POLICY_GATE, PROMOTION_STEP

__all__ = ["steps"]


@click.command()
@click.argument("pipeline")
@click.option("--bundle", "name", metavar="NAME", help="Default: the Bundle under way, else the newest.")
@table_option
@cluster_command
async def steps(session: Session, *, pipeline: str, name: str | None, output: str) -> None:
    """Show the PromotionSteps and PolicyGates of a Bundle with their states.

    Once they are gone with their Graph, it shows what the Bundle keeps of them; with -o json and -o yaml the Bundle.
    """
    objects = await read_objects(session, pipeline, name)
    bundle = objects.bundle
    if bundle is None:
        raise no_bundle(pipeline)
    if output not in TABLES:
        selector = f"{LABEL_BUNDLE}={label_value(bundle.metadata.name)}"
        listed = [
            await session.client.list(resource, session.namespace, labels=selector)
            for resource in (PROMOTION_STEP, POLICY_GATE)
        ]
        items = [item for found in listed for item in found.items]
        print_documents(items or [await session.client.get(BUNDLE, bundle.metadata.name, session.namespace)], output)
        return
    states, gates = promotion_states(objects)
    failures = await render_failures(session)
    rows: list[list[str]] = []
    for state in states:
        rows += _gate_rows(gate for gate in gates if gate.environment == state.name)
        rows.append(_step_row(state, render_failure(state.step, failures)))
    versions, phase = bundle_versions(bundle.spec.artifacts), bundle.status.phase or "Available"
    say(f"Bundle {bundle.metadata.name} ({versions}): {phase}", err=True)
    if warning := unattended([objects.pipeline, bundle], now=datetime.now(UTC)):
        say(f"Note: {warning}", err=True)
    print_table(["ENVIRONMENT", "NODE", "STATE", "MESSAGE"], rows, empty="", prose=("MESSAGE",))


def _gate_rows(gates: Iterable[GateLine]) -> Iterable[list[str]]:
    for gate in gates:
        yield [
            gate.environment,
            f"gate {gate.name} [{gate.scope}]",
            state_text(gate.answer),
            one_line(gate.detail),
        ]


def _step_row(state: EnvironmentState, failure: str | None) -> list[str]:
    message = "; ".join(filter(None, (state.message, failure)))
    if state.health:
        message = f"Verified, and no longer healthy: {message}"
    return [state.name, "step", state_text(state.health or state.state), one_line(message)]
