"""`kardinal explain`: why an environment has not been promoted to, with the values its gates saw.

The answer is put together from what the controllers wrote: the Graph says which gates and steps there are, the gates
what they saw, the step how far it got. Nothing is evaluated here. What a gate saw is of its template as it is now, and
where the template is gone, or an instance was changed by hand, its reason says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime

import click

from kardinal.api import BUNDLE, POLICY_GATE, PROMOTION_STEP, Bundle, Graph, PolicyGate, PromotionStep
from kardinal.api.image import bundle_title
from kardinal.api.names import freeze_name, step_name
from kardinal.api.promotion_step import ENDED_STATES
from kardinal.cli.errors import CommandError
from kardinal.cli.output import age, print_value, span, state_text
from kardinal.cli.render_failures import EVENTS_OF_STEPS, render_failure, render_failures
from kardinal.cli.session import Session, cluster_command, output_option
from kardinal.kube import KubeError, NotFound
from kardinal.objects import EVENT, GRAPH, JsonObject, ResourceType

__all__ = ["explain"]

_WATCHED = {BUNDLE: None, POLICY_GATE: None, PROMOTION_STEP: None, EVENT: EVENTS_OF_STEPS}
"""Watched kind -> its field selector."""
RETRY_SECONDS = 1.0
"""Pause before a watch that broke is opened again."""


@dataclass(frozen=True, slots=True)
class GateLine:
    """One gate of the environment. `answer` is PASS, FAIL or PENDING (not evaluated); `detail` is of `seen_at`."""

    name: str
    scope: str
    answer: str
    detail: str
    seen_at: datetime | None = None
    changes_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    pipeline: str
    environment: str
    bundle: Bundle
    gates: Sequence[GateLine]
    failure: str | None
    result: str

    def to_json(self) -> dict[str, object]:
        return {
            "pipeline": self.pipeline,
            "environment": self.environment,
            "bundle": self.bundle.metadata.name,
            "gates": [
                {
                    "name": gate.name,
                    "scope": gate.scope,
                    "result": gate.answer,
                    "detail": gate.detail,
                    "evaluatedAt": gate.seen_at.isoformat() if gate.seen_at else None,
                    "changesAt": gate.changes_at.isoformat() if gate.changes_at else None,
                }
                for gate in self.gates
            ],
            "failure": self.failure,
            "result": self.result,
        }


@click.command()
@click.argument("pipeline")
@click.option("--env", "environment", required=True, metavar="ENVIRONMENT")
@click.option("--bundle", "name", metavar="NAME", help="Default: the Bundle under way, else the newest.")
@click.option("--watch", is_flag=True, help="Print again whenever the answer changes; ends with Ctrl-C.")
@output_option
@cluster_command
async def explain(
    session: Session, *, pipeline: str, environment: str, name: str | None, watch: bool, output: str
) -> None:
    """Show what holds, or held, a Bundle before an environment."""
    found = await session.pipeline(pipeline)
    known = [entry.name for entry in found.spec.environments]
    if environment not in known:
        raise CommandError(
            f"Pipeline {pipeline} has no environment {environment}", remedy=f"It has: {', '.join(known)}"
        )
    explanation = await _explanation(session, pipeline, environment, name)
    _print(explanation, output)
    if not watch:
        return
    async with aclosing(_changes(session)) as changes:
        async for _ in changes:
            latest = await _explanation(session, pipeline, environment, name)
            if latest.to_json() != explanation.to_json():
                explanation = latest
                click.echo()
                _print(explanation, output)


async def _explanation(session: Session, pipeline: str, environment: str, name: str | None) -> Explanation:
    bundle = await session.bundle(pipeline, name)
    step = await _step(session, bundle, environment)
    freeze = await _found(session, POLICY_GATE, freeze_name(pipeline))
    graph = await _found(session, GRAPH, bundle.metadata.name)
    failure = render_failure(step, await render_failures(session))
    known = Graph.model_validate(graph) if graph is not None else None
    gates = await _gates(session, known, environment) if known is not None else []
    result = _refused(known, step) or _result(bundle, environment, gates, step, freeze=freeze)
    return Explanation(pipeline, environment, bundle, gates, failure, result)


async def _gates(session: Session, graph: Graph, environment: str) -> list[GateLine]:
    """Every gate the Graph has for the environment, whether it was created yet or not."""
    states = {status.id: status for status in graph.status.nodes}
    lines = []
    for node in graph.spec.nodes:
        template = node.get("template", {})
        origin = template.get("spec", {}).get("origin", {}) if template.get("kind") == POLICY_GATE.kind else {}
        if origin.get("environment") != environment:
            continue
        try:
            gate = PolicyGate.model_validate(
                await session.client.get(POLICY_GATE, template["metadata"]["name"], session.namespace)
            )
        except NotFound:
            waiting = states.get(node["id"])
            detail = (waiting.message or waiting.reason if waiting else None) or "waits for the environment before it"
            lines.append(GateLine(origin["name"], origin["scope"], "PENDING", detail))
            continue
        answer = {True: "PASS", False: "FAIL", None: "PENDING"}[gate.status.ready]
        lines.append(
            GateLine(
                origin["name"],
                origin["scope"],
                answer,
                gate.status.reason or "not evaluated yet",
                gate.status.last_evaluated_at,
                gate.status.next_transition_at if answer == "FAIL" else None,
            )
        )
    return lines


async def _step(session: Session, bundle: Bundle, environment: str) -> PromotionStep | None:
    try:
        stored = await session.client.get(
            PROMOTION_STEP, step_name(bundle.metadata.name, environment), session.namespace
        )
    except NotFound:
        return None
    return PromotionStep.model_validate(stored)


async def _found(session: Session, resource: ResourceType, name: str) -> JsonObject | None:
    try:
        return await session.client.get(resource, name, session.namespace)
    except NotFound:
        return None


def _refused(graph: Graph | None, step: PromotionStep | None) -> str | None:
    """Return why the engine does not walk the Graph, or the agent does not execute the step; None where they do."""
    accepted = graph.status.condition("Accepted") if graph is not None else None
    if accepted is not None and accepted.status == "False":
        return f"REFUSED: {accepted.message}"
    not_owned = step.status.condition("NotOwned") if step is not None else None
    if not_owned is not None and not_owned.status == "True":
        return f"REFUSED: {not_owned.message}"
    return None


def _result(
    bundle: Bundle,
    environment: str,
    gates: Sequence[GateLine],
    step: PromotionStep | None,
    *,
    freeze: JsonObject | None,
) -> str:
    recorded = bundle.status.environments.get(environment)
    state = (step.status.state or "Pending") if step else (recorded.state if recorded else None)
    message = (step.status.message if step else recorded.message if recorded else None) or ""
    ready = bundle.status.condition("Ready")
    if state is not None and state in ENDED_STATES:
        return f"{state.upper()}: {message}" if message else state.upper()
    if bundle.status.phase is not None and bundle.status.has_ended and bundle.status.phase != "Verified":
        return f"{bundle.status.phase.upper()}: {ready.message if ready else message}"
    if freeze is not None:
        why = freeze["spec"].get("message")
        return "PAUSED: the Pipeline is frozen until kardinal resume" + (f" ({why})" if why else "")
    failing = [gate.name for gate in gates if gate.answer == "FAIL"]
    if failing:
        return f"BLOCKED by {', '.join(failing)}"
    if step is None:
        return "WAITING for the environments and gates before it"
    return f"{state}: {message}" if message else str(state)


def _print(explanation: Explanation, output: str) -> None:
    if output != "table":
        print_value(explanation.to_json(), output)
        return
    bundle = explanation.bundle
    click.echo(f"PROMOTION: {explanation.pipeline} / {explanation.environment}")
    click.echo(f"  Bundle: {bundle.metadata.name} ({bundle_title(bundle.spec.artifacts)})")
    click.echo("\nPOLICY GATES:")
    width = max((len(gate.name) for gate in explanation.gates), default=0)
    for gate in explanation.gates:
        answer = state_text(gate.answer) + " " * (7 - len(gate.answer))
        click.echo(f"  {gate.name.ljust(width)}  {f'[{gate.scope}]'.ljust(6)}  {answer}  {gate.detail}")
        if gate.answer == "FAIL":
            click.echo(f"  {''.ljust(width)}          {_timing(gate)}")
    if not explanation.gates:
        click.echo("  none")
    if explanation.failure:
        click.echo(f"\n{explanation.failure}")
    click.echo(f"\nRESULT: {explanation.result}")


def _timing(gate: GateLine) -> str:
    """When a closed gate was asked (its values are of that moment), and when time alone can open it."""
    asked = f"asked {age(gate.seen_at)} ago" if gate.seen_at else "never asked"
    if gate.changes_at is None:
        return asked
    return f"{asked}; ETA: ~{span(gate.changes_at - datetime.now(UTC))} (at {gate.changes_at:%Y-%m-%d %H:%M:%S} UTC)"


async def _changes(session: Session) -> AsyncGenerator[None]:
    """Yield a tick after anything of interest changed; several changes at once are one tick."""
    changed = asyncio.Event()

    async def follow(resource: ResourceType, fields: str | None) -> None:
        while True:
            try:
                revision = (await session.client.list(resource, session.namespace, limit=1)).resource_version
                async with session.client.watch(
                    resource, session.namespace, fields=fields, resource_version=revision
                ) as events:
                    changed.set()
                    async for _ in events:
                        changed.set()
            except KubeError:
                await asyncio.sleep(RETRY_SECONDS)

    async with asyncio.TaskGroup() as tasks:
        for resource, fields in _WATCHED.items():
            tasks.create_task(follow(resource, fields))
        while True:
            await changed.wait()
            changed.clear()
            yield
