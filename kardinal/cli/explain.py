"""`kardinal explain`: why an environment has not been promoted to, with the values that its gates have read."""

from __future__ import annotations

from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import click

from kardinal.cli.changes import changes
from kardinal.cli.explain_graph import explain_graph
from kardinal.cli.output import age, one_line, print_value, say, span, state_text, width
from kardinal.cli.session import Session, cluster_command, output_option
from kardinal.cli.table import text_width, wrapped
from kardinal.objects import EVENT
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from kardinal.promotion.views.api_reader import EVENTS_OF_STEPS
from kardinal.promotion.views.explanation import Explanation, explanation_of
from kardinal.promotion.views.gates import GateLine
from kardinal.promotion.views.reading import read_objects
from kardinal.promotion.views.render_failures import read_render_failures
from kardinal.promotion.views.status import unattended

__all__ = ["explain"]

_GRAPH = "graph/"

_WATCHED = {BUNDLE: None, POLICY_GATE: None, PROMOTION_STEP: None, EVENT: EVENTS_OF_STEPS}
"""The kinds whose changes `--watch` follows, with their field selectors."""


@click.command()
@click.argument("pipeline", metavar="PIPELINE|graph/NAME")
@click.option("--env", "environment", metavar="ENVIRONMENT", help="Required for a Pipeline.")
@click.option("--bundle", "name", metavar="NAME", help="Default: the Bundle under way, else the newest.")
@click.option("--watch", is_flag=True, help="Print again whenever the answer changes; ends with Ctrl-C.")
@output_option
@cluster_command
async def explain(
    session: Session, *, pipeline: str, environment: str | None, name: str | None, watch: bool, output: str
) -> None:
    """Show what holds, or held, a Bundle before an environment; of graph/NAME what its nodes wait for."""
    if pipeline.startswith(_GRAPH):
        if environment is not None or name is not None or watch:
            raise click.UsageError("--env, --bundle and --watch are about a Pipeline, not about a Graph")
        await explain_graph(session, pipeline.removeprefix(_GRAPH), output)
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
    room = width()
    say(f"PROMOTION: {explanation.pipeline} / {explanation.environment}")
    say(f"  Bundle: {explanation.bundle} ({explanation.versions})")
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
        _echo("NOTE: ", one_line(note), room)
    _echo("RESULT: ", one_line(explanation.result), room)


def _echo(label: str, text: str, room: int | None) -> None:
    """Print a label and a text, wrapped to `room` columns.

    The further lines are indented to the text, or by six columns if the label takes more than half of the room.
    """
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
    """Return the time of a gate's evaluation, and of its opening if it opens by the passing of time.

    For example `asked 5m ago; ETA: ~14h (at 2026-11-30 00:00:00 UTC)`.
    """
    asked = f"asked {age(gate.seen_at)} ago" if gate.seen_at else "never asked"
    if gate.opens_at is None:
        return asked
    return f"{asked}; ETA: ~{span(gate.opens_at - datetime.now(UTC))} (at {gate.opens_at:%Y-%m-%d %H:%M:%S} UTC)"
