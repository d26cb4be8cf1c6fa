"""`kardinal explain`: why an environment has not been promoted to, with the values that its gates have read.

Of an object, `explain KIND/NAME`, it says why that is as it is. Packages add kinds (`kardinal.cli.kinds`).
"""

from __future__ import annotations

from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import click

from kardinal.cli.changes import changes
from kardinal.cli.explain_graph import explain_graph
from kardinal.cli.kinds import Explainer, added_explainers, load_explainer
from kardinal.cli.output import age, one_line, print_value, say, say_labelled, span, state_text
from kardinal.cli.session import Session, cluster_command, output_option
from kardinal.objects import EVENT
from kardinal.objects.suggestions import nearest
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from kardinal.promotion.views.api_reader import EVENTS_OF_STEPS
from kardinal.promotion.views.explanation import Explanation, explanation_of
from kardinal.promotion.views.gates import GateLine
from kardinal.promotion.views.reading import read_objects
from kardinal.promotion.views.render_failures import read_render_failures
from kardinal.promotion.views.status import unattended

__all__ = ["explain"]

_GRAPH = "graph"

_WATCHED = {BUNDLE: None, POLICY_GATE: None, PROMOTION_STEP: None, EVENT: EVENTS_OF_STEPS}
"""The kinds whose changes `--watch` follows, with their field selectors."""


@click.command()
@click.argument("pipeline", metavar="PIPELINE|KIND/NAME")
@click.option("--env", "environment", metavar="ENVIRONMENT", help="Required for a Pipeline.")
@click.option("--bundle", "name", metavar="NAME", help="Default: the Bundle under way, else the newest.")
@click.option("--watch", is_flag=True, help="Print again whenever the answer changes; ends with Ctrl-C.")
@output_option
@cluster_command
async def explain(
    session: Session, *, pipeline: str, environment: str | None, name: str | None, watch: bool, output: str
) -> None:
    """Show what holds, or held, a Bundle before an environment; of graph/NAME what its nodes wait for.

    With supply chains, workload/NAME and deliverable/NAME show which blueprint is chosen and why, and the template and
    the parameters of each of its resources.
    """
    kind, slash, of_kind = pipeline.partition("/")
    if slash:
        if not kind or not of_kind:
            raise click.UsageError("write KIND/NAME, such as graph/my-app-1")
        if environment is not None or name is not None or watch:
            raise click.UsageError(f"--env, --bundle and --watch are about a Pipeline, not about a {kind}")
        await _explainer(kind, of_kind)(session, of_kind, output)
        return
    if environment is None:
        raise click.UsageError("Missing option '--env'.")
    explanation = await _explanation(session, pipeline, environment, name)
    _print(explanation, output)
    if not watch:
        return
    async with aclosing(changes(session, _WATCHED)) as ticks:
        async for _ in ticks:
            latest = await _explanation(session, pipeline, environment, name)
            if _document(latest) != _document(explanation):
                explanation = latest
                say()
                _print(explanation, output)


def _explainer(kind: str, name: str) -> Explainer:
    if kind == _GRAPH:
        return explain_graph
    known = added_explainers()
    if kind in known:
        return load_explainer(kind)
    kinds = [_GRAPH, *sorted(known)]
    near = nearest(kind, kinds)
    remedy = f"did you mean {near}/{name}?" if near else f"there are {', '.join(kinds)}"
    raise click.UsageError(f"there is no kind {kind} to explain; {remedy}")


async def _explanation(session: Session, pipeline: str, environment: str, name: str | None) -> Explanation:
    objects = await read_objects(session.reader, session.namespace, pipeline, name)
    failures = await read_render_failures(session.reader, session.namespace)
    found = explanation_of(objects, environment, failures=failures)
    if objects.bundle and (warning := unattended([objects.pipeline, objects.bundle], now=datetime.now(UTC))):
        say(f"Note: {warning}", err=True)
    return found


def _document(explanation: Explanation) -> dict[str, Any]:
    return {
        "pipeline": explanation.pipeline,
        "environment": explanation.environment,
        "bundle": explanation.bundle,
        "gates": [
            {
                "name": gate.name,
                "scope": gate.scope,
                "result": gate.answer,
                "detail": gate.detail,
                "evaluatedAt": gate.seen_at.isoformat() if gate.seen_at else None,
                "changesAt": gate.opens_at.isoformat() if gate.opens_at else None,
            }
            for gate in explanation.gates
        ],
        "failure": explanation.failure,
        "result": explanation.result,
        "notes": list(map(one_line, explanation.notes)),
    }


def _print(explanation: Explanation, output: str) -> None:
    if output != "table":
        print_value(_document(explanation), output)
        return
    say(f"PROMOTION: {explanation.pipeline} / {explanation.environment}")
    say(f"  Bundle: {explanation.bundle} ({explanation.versions})")
    say("\nPOLICY GATES:")
    columns = max((len(gate.name) for gate in explanation.gates), default=0)
    for gate in explanation.gates:
        answer = state_text(gate.answer) + " " * (7 - len(gate.answer))
        label = f"  {gate.name.ljust(columns)}  {f'[{gate.scope}]'.ljust(6)}  {answer}  "
        say_labelled(label, one_line(gate.detail))
        if gate.answer == "FAIL":
            say_labelled(f"  {''.ljust(columns)}          ", _timing(gate))
        if gate.answer == "FAIL" and gate.message:
            say_labelled(f"  {''.ljust(columns)}          ", f"“{one_line(gate.message)}”")
    if not explanation.gates:
        say("  none")
    if explanation.failure:
        say()
        say_labelled("", one_line(explanation.failure))
    say()
    for note in explanation.notes:
        say_labelled("NOTE: ", one_line(note))
    say_labelled("RESULT: ", one_line(explanation.result))


def _timing(gate: GateLine) -> str:
    """Return the time of a gate's evaluation, and of its opening if it opens by the passing of time.

    For example `asked 5m ago; ETA: ~14h (at 2026-11-30 00:00:00 UTC)`.
    """
    asked = f"asked {age(gate.seen_at)} ago" if gate.seen_at else "never asked"
    if gate.opens_at is None:
        return asked
    return f"{asked}; ETA: ~{span(gate.opens_at - datetime.now(UTC))} (at {gate.opens_at:%Y-%m-%d %H:%M:%S} UTC)"
