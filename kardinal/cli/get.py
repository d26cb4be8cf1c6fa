"""`kardinal get`: what is where, and how far it got."""

from __future__ import annotations

from collections.abc import Iterable

import click

from kardinal.api import BUNDLE, PIPELINE, POLICY_GATE, PROMOTION_STEP, Bundle, Pipeline, PolicyGate, PromotionStep
from kardinal.api.image import bundle_version
from kardinal.api.names import LABEL_BUNDLE, LABEL_PIPELINE, freeze_name, label_value
from kardinal.cli.output import age, print_documents, print_table, state_text
from kardinal.cli.render_failures import render_failure, render_failures
from kardinal.cli.session import Session, cluster_command, newest_first, output_option

__all__ = ["get"]


@click.group()
def get() -> None:
    """Show Pipelines, Bundles or the steps of a promotion."""


@get.command()
@click.argument("name", required=False)
@output_option
@cluster_command
async def pipelines(session: Session, *, name: str | None, output: str) -> None:
    """List Pipelines with the Bundle that is verified in each environment."""
    if name is not None:
        await session.pipeline(name)
    found = (await session.client.list(PIPELINE, session.namespace)).items
    found = [item for item in found if name in (None, item["metadata"]["name"])]
    if output != "table":
        print_documents(found, output)
        return
    bundles = [Bundle.model_validate(item) for item in (await session.client.list(BUNDLE, session.namespace)).items]
    gates = await session.client.list(POLICY_GATE, session.namespace)
    present = {gate["metadata"]["name"] for gate in gates.items}
    rows: list[list[str]] = []
    for pipeline in map(Pipeline.model_validate, found):
        ready = pipeline.status.condition("Ready")
        paused = " (paused)" if freeze_name(pipeline.metadata.name) in present else ""
        own = [bundle for bundle in newest_first(bundles) if _belongs(bundle, pipeline)]
        rows.append(
            [
                f"{pipeline.metadata.name}{paused}",
                state_text(ready.status if ready else "Unknown"),
                "  ".join(f"{env.name}={_verified_version(own, env.name)}" for env in pipeline.spec.environments),
                age(pipeline.metadata.creation_timestamp),
            ]
        )
    print_table(
        ["PIPELINE", "READY", "VERIFIED", "AGE"],
        rows,
        empty=f"No Pipelines in namespace {session.namespace}. Create one: kardinal init -f kardinal.yaml",
    )


@get.command()
@click.argument("pipeline")
@output_option
@cluster_command
async def bundles(session: Session, *, pipeline: str, output: str) -> None:
    """List the Bundles of a Pipeline, newest first, with where they came from."""
    await session.pipeline(pipeline)
    found = await session.bundles(pipeline)
    if output != "table":
        listed = await session.client.list(
            BUNDLE, session.namespace, labels=f"{LABEL_PIPELINE}={label_value(pipeline)}"
        )
        print_documents(listed.items, output)
        return
    rows: list[list[str]] = [
        [
            bundle.metadata.name,
            bundle_version(bundle.spec.artifacts),
            state_text(bundle.status.phase or "Available"),
            "  ".join(f"{name}={entry.state}" for name, entry in bundle.status.environments.items()),
            (bundle.spec.provenance.commit_sha or "")[:12] if bundle.spec.provenance else "",
            (bundle.spec.provenance.author or "") if bundle.spec.provenance else "",
            age(bundle.metadata.creation_timestamp),
        ]
        for bundle in found
    ]
    print_table(
        ["BUNDLE", "VERSION", "PHASE", "ENVIRONMENTS", "COMMIT", "AUTHOR", "AGE"],
        rows,
        empty=f"No Bundles. Create one: kardinal create bundle {pipeline} --image REPOSITORY:TAG",
    )


@get.command()
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
        f"Bundle {bundle.metadata.name} ({bundle_version(bundle.spec.artifacts)}): {bundle.status.phase}", err=True
    )
    print_table(["ENVIRONMENT", "NODE", "STATE", "MESSAGE"], rows, empty="")


def _belongs(bundle: Bundle, pipeline: Pipeline) -> bool:
    name = bundle.status.pipeline or bundle.metadata.labels.get(LABEL_PIPELINE)
    return name == pipeline.metadata.name


def _verified_version(bundles: Iterable[Bundle], environment: str) -> str:
    """Return the version that was verified last in an environment; a dash when none was."""
    verified = [
        (entry.verified_at, bundle)
        for bundle in bundles
        if (entry := bundle.status.environments.get(environment)) and entry.state == "Verified" and entry.verified_at
    ]
    if not verified:
        return "-"
    return bundle_version(max(verified, key=lambda pair: pair[0])[1].spec.artifacts)


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
