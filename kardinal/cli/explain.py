"""`kardinal explain`: why an environment has not been promoted to, with the values its gates saw.

The answer is put together from what the controllers wrote: the Graph says which gates and steps there are, the gates
what they saw, the step how far it got. Nothing is evaluated here. What a gate saw is of its template as it is now, and
where the template is gone, or an instance was changed by hand, its reason says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime

import click

from kardinal.api import BUNDLE, POLICY_GATE, PROMOTION_STEP, Bundle, Graph, PolicyGate, PromotionStep
from kardinal.api.image import bundle_versions
from kardinal.api.promotion_step import ENDED_STATES
from kardinal.cli.changes import changes
from kardinal.cli.environments import WITHOUT_STEP, EnvironmentState
from kardinal.cli.errors import CommandError
from kardinal.cli.gates import GateLine
from kardinal.cli.output import age, one_line, print_value, say, span, state_text, width
from kardinal.cli.render_failures import EVENTS_OF_STEPS, render_failure, render_failures
from kardinal.cli.session import Session, cluster_command, no_bundle, output_option
from kardinal.cli.status.reading import read_objects
from kardinal.cli.status.view import Objects, bundle_notes, promotion_states, unattended
from kardinal.cli.table import text_width, wrapped
from kardinal.objects import EVENT, JsonObject
from kardinal.policy.holds import why_held

__all__ = ["explain"]

_WATCHED = {BUNDLE: None, POLICY_GATE: None, PROMOTION_STEP: None, EVENT: EVENTS_OF_STEPS}
"""Watched kind -> its field selector."""

_TITLES = {
    "Skipped": "SKIPPED",
    "NotTargeted": "NOT TARGETED",
    "NotReached": "NOT REACHED",
    "Waiting": "WAITING",
    "Blocked": "BLOCKED",
    "Degraded": "DEGRADED",
    "CannotBeSeen": "CANNOT BE SEEN",
}


@dataclass(frozen=True, slots=True)
class Explanation:
    pipeline: str
    environment: str
    bundle: Bundle
    gates: Sequence[GateLine]
    failure: str | None
    result: str
    notes: Sequence[str] = ()

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
                    "changesAt": gate.opens_at.isoformat() if gate.opens_at else None,
                }
                for gate in self.gates
            ],
            "failure": self.failure,
            "result": self.result,
            "notes": list(self.notes),
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
    async with aclosing(changes(session, _WATCHED)) as ticks:
        async for _ in ticks:
            latest = await _explanation(session, pipeline, environment, name)
            if latest.to_json() != explanation.to_json():
                explanation = latest
                say()
                _print(explanation, output)


async def _explanation(session: Session, pipeline: str, environment: str, name: str | None) -> Explanation:
    objects = await read_objects(session, pipeline, name)
    bundle = objects.bundle
    if bundle is None:
        raise no_bundle(pipeline)
    failures = await render_failures(session)
    if warning := unattended([objects.pipeline, bundle], now=datetime.now(UTC)):
        say(f"Note: {warning}", err=True)
    states, gates = promotion_states(objects)
    found = next(state for state in states if state.name == environment)
    step = next((each for each in objects.steps if each.spec.environment == environment), None)
    before = [gate for gate in gates if gate.environment == environment]
    return Explanation(
        pipeline,
        environment,
        bundle,
        before,
        render_failure(step, failures),
        _refused(objects.graph, step)
        or _unhealthy(found, states)
        or _result(bundle, found, before, freeze=objects.freeze, hold=_hold(objects, environment)),
        tuple(bundle_notes(bundle)),
    )


def _refused(graph: JsonObject | None, step: PromotionStep | None) -> str | None:
    """Return why the engine does not walk the Graph, or the agent does not execute the step; None where they do."""
    accepted = Graph.model_validate(graph).status.condition("Accepted") if graph is not None else None
    if accepted is not None and accepted.status == "False":
        return f"REFUSED: {accepted.message}"
    not_owned = step.status.condition("NotOwned") if step is not None else None
    if not_owned is not None and not_owned.status == "True":
        return f"REFUSED: {not_owned.message}"
    return None


def _unhealthy(found: EnvironmentState, states: Sequence[EnvironmentState]) -> str | None:
    """Return what is no longer healthy, here or right before; None where nothing is that matters here."""
    if found.health:
        return f"{_TITLES[found.health]}: Verified, and no longer healthy: {found.message}"
    ill = [each for each in states if each.name in found.upstreams and each.health]
    if not ill or found.state not in ("Waiting", "Blocked"):
        return None
    return f"HELD: {'; '.join(f'{each.name} is no longer healthy: {each.message}' for each in ill)}"


def _hold(objects: Objects, environment: str) -> str:
    """Return what keeps the Bundle from an environment since a rollback; empty where nothing does."""
    gate = dict(objects.held).get(environment)
    if gate is None or objects.bundle is None or gate["spec"].get("exceptBundle") == objects.bundle.metadata.name:
        return ""
    return why_held(gate, objects.pipeline.metadata.name, environment).replace("held", "HELD", 1)


def _result(
    bundle: Bundle,
    found: EnvironmentState,
    gates: Sequence[GateLine],
    *,
    freeze: PolicyGate | None,
    hold: str,
) -> str:
    ready = bundle.status.condition("Ready")
    if found.state in ENDED_STATES:
        return f"{found.state.upper()}: {found.message}" if found.message else found.state.upper()
    if found.state in ("Skipped", "NotTargeted"):
        return f"{_TITLES[found.state]}: {found.message}"
    if bundle.status.phase is not None and bundle.status.has_ended and bundle.status.phase != "Verified":
        return f"{bundle.status.phase.upper()}: {ready.message if ready else found.message}"
    if freeze is not None:
        why = freeze.spec.message
        return "PAUSED: the Pipeline is frozen until kardinal resume" + (f" ({why})" if why else "")
    if hold:
        return hold
    failing = [gate.name for gate in gates if gate.answer == "FAIL"]
    if failing:
        return f"BLOCKED by {', '.join(failing)}"
    if found.state in WITHOUT_STEP:
        return f"{_TITLES[found.state]}: {found.message}"
    return f"{found.state}: {found.message}" if found.message else found.state


def _print(explanation: Explanation, output: str) -> None:
    if output != "table":
        print_value(explanation.to_json(), output)
        return
    bundle, room = explanation.bundle, width()
    say(f"PROMOTION: {explanation.pipeline} / {explanation.environment}")
    say(f"  Bundle: {bundle.metadata.name} ({bundle_versions(bundle.spec.artifacts)})")
    say("\nPOLICY GATES:")
    columns = max((len(gate.name) for gate in explanation.gates), default=0)
    for gate in explanation.gates:
        answer = state_text(gate.answer) + " " * (7 - len(gate.answer))
        label = f"  {gate.name.ljust(columns)}  {f'[{gate.scope}]'.ljust(6)}  {answer}  "
        _echo(label, one_line(gate.detail), room)
        if gate.answer == "FAIL":
            _echo(f"  {''.ljust(columns)}          ", _timing(gate), room)
        if gate.answer == "FAIL" and gate.message:
            _echo(f"  {''.ljust(columns)}          ", f"“{one_line(gate.message)}”", room)
    if not explanation.gates:
        say("  none")
    if explanation.failure:
        say()
        _echo("", one_line(explanation.failure), room)
    say()
    for note in explanation.notes:
        _echo("NOTE: ", note, room)
    _echo("RESULT: ", one_line(explanation.result), room)


def _echo(label: str, text: str, room: int | None) -> None:
    """Print a text behind a label; where there is too little room beside it, on indented lines below."""
    if room is None or text_width(label) + text_width(text) <= room:
        say(label + text)
        return
    beside = room - text_width(label)
    indent = " " * text_width(label) if beside >= room // 2 else "      "
    first, *others = wrapped(text, room - len(indent))
    if label.strip() and len(indent) < text_width(label):
        say(label.rstrip())
        label = indent
    say((label if len(indent) == text_width(label) else indent) + first)
    for line in others:
        say(indent + line)


def _timing(gate: GateLine) -> str:
    """When a closed gate was asked (its values are of that moment), and when time alone can open it."""
    asked = f"asked {age(gate.seen_at)} ago" if gate.seen_at else "never asked"
    if gate.opens_at is None:
        return asked
    return f"{asked}; ETA: ~{span(gate.opens_at - datetime.now(UTC))} (at {gate.opens_at:%Y-%m-%d %H:%M:%S} UTC)"
