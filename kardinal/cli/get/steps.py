"""`kardinal get steps`."""

from __future__ import annotations

from collections.abc import Iterable

import click

from kardinal.api import PolicyGate, PromotionStep
from kardinal.api.image import bundle_title
from kardinal.api.names import LABEL_BUNDLE, label_value
from kardinal.cli.output import print_documents, print_table, state_text
from kardinal.cli.render_failures import render_failure, render_failures
from kardinal.cli.session import Session, cluster_command, output_option
from kardinal.objects import POLICY_GATE, PROMOTION_STEP

__all__ = ["steps"]


@click.command()
@click.argument("pipeline")
@click.option("--bundle", "name", metavar="NAME", help="Default: the Bundle under way, else the newest.")
@output_option
@cluster_command
async def steps(session: Session, *, pipeline: str, name: str | None, output: str) -> None:
    """Show the PromotionSteps and PolicyGates of a Bundle with their states."""
    found = await session.pipeline(pipeline)
    bundle = await session.bundle(pipeline, name)
    selector = f"{LABEL_BUNDLE}={label_value(bundle.metadata.name)}"
    step_items = (await session.client.list(PROMOTION_STEP, session.namespace, labels=selector)).items
    gate_items = (await session.client.list(POLICY_GATE, session.namespace, labels=selector)).items
    if output != "table":
        print_documents([*step_items, *gate_items], output)
        return
    by_environment = {step.spec.environment: step for step in map(PromotionStep.model_validate, step_items)}
    gates = [PolicyGate.model_validate(item) for item in gate_items]
    failures = await render_failures(session)
    rows: list[list[str]] = []
    for environment in found.spec.environments:
        rows += _gate_rows(
            gate for gate in gates if gate.spec.origin and gate.spec.origin.environment == environment.name
        )
        step = by_environment.get(environment.name)
        rows.append(_step_row(environment.name, step, render_failure(step, failures)))
    click.echo(
        f"Bundle {bundle.metadata.name} ({bundle_title(bundle.spec.artifacts)}): {bundle.status.phase}", err=True
    )
    print_table(["ENVIRONMENT", "NODE", "STATE", "MESSAGE"], rows, empty="")


def _gate_rows(gates: Iterable[PolicyGate]) -> Iterable[list[str]]:
    for gate in gates:
        if gate.spec.origin is not None:
            yield [
                gate.spec.origin.environment,
                f"gate {gate.spec.origin.name} [{gate.spec.origin.scope}]",
                state_text("PASS" if gate.status.ready else "FAIL"),
                gate.status.reason or "not evaluated yet",
            ]


def _step_row(environment: str, step: PromotionStep | None, failure: str | None) -> list[str]:
    if step is None:
        return [environment, "step", state_text("-"), "not started"]
    message = "; ".join(filter(None, (step.status.message, failure)))
    return [environment, "step", state_text(step.status.state or "Pending"), message]
