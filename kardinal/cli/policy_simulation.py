"""`kardinal policy simulate` and `kardinal policy replay`: what gates would say, and what they would have said."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from kardinal.cli.errors import CommandError
from kardinal.cli.moments import Moment, Span
from kardinal.cli.output import one_line, print_table, print_value, say, state_text
from kardinal.cli.policy_files import gates_of_file
from kardinal.cli.session import Session, cluster_command, output_option, policy_namespaces_option
from kardinal.kube import Forbidden, NotFound
from kardinal.objects import CONFIG_MAP
from kardinal.objects.conditions import format_time
from kardinal.promotion.api import Bundle, Pipeline, PolicyGate
from kardinal.promotion.policy.calendar import HOLIDAYS_KEY, Calendar, parse_holidays
from kardinal.promotion.policy.matching import GateTemplate
from kardinal.promotion.policy.simulation import Interval, all_open
from kardinal.promotion.views.bundles import pipeline_of
from kardinal.promotion.views.missing import unknown_environment
from kardinal.promotion.views.simulation import (
    GateSituation,
    SimulatedGate,
    binding_templates,
    needs_bundle,
    recorded_results,
    replayed,
)

__all__ = ["replay", "simulate"]


@click.command()
@click.argument("pipeline", required=False)
@click.option("--env", "environment", required=True, metavar="ENVIRONMENT")
@click.option("--bundle", "name", metavar="NAME", help="Default: none, or the one under way where gates read a Bundle.")
@click.option("--time", "at", type=Moment(), help="'Saturday 3pm' or 'Sat 15:00' in UTC, or RFC 3339. Default: now.")
@click.option("--next", "span", type=Span(), metavar="7d", help="Show when the gates are open and closed in this span.")
@policy_namespaces_option
@output_option
@cluster_command
async def simulate(
    session: Session,
    *,
    pipeline: str | None,
    environment: str,
    name: str | None,
    at: datetime | None,
    span: timedelta | None,
    policy_namespaces: str,
    output: str,
) -> None:
    """Ask the gates before an environment as if it were another time.

    PIPELINE may be left out where one has the environment. Of a Bundle the values count that its gates have read last;
    of them, only the soak grows. What no gate has read so far is not known, and closes a gate that asks for it.
    """
    if at is not None and span is not None:
        raise click.UsageError("--time asks about one moment, --next about a span from now on: give one of them")
    organisation = tuple(filter(None, map(str.strip, policy_namespaces.split(","))))
    found = await _pipeline(session, pipeline, environment)
    gates = await binding_templates(session.reader, found, environment, policy_namespaces=organisation)
    now = datetime.now(UTC)
    bundle = await session.bundle(found.metadata.name, name) if name or needs_bundle(gates) else None
    situation = await _situation(session, found, environment, bundle)
    simulated = [situation.simulated(gate, await _calendar(session, gate), now=now) for gate in gates]
    if span is None:
        _print_moment(simulated, at or now, output)
    else:
        _print_span(simulated, now, now + span, output)


@click.command()
@click.argument("bundle")
@click.option("--env", "environment", required=True, metavar="ENVIRONMENT")
@click.option(
    "-f",
    "--file",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path, allow_dash=True),
    help="PolicyGates to ask instead of today's.",
)
@output_option
@cluster_command
async def replay(session: Session, *, bundle: str, environment: str, path: Path | None, output: str) -> None:
    """Ask today's gates, or those of a file, with the inputs that were recorded when a Bundle was promoted.

    A gate of the file takes the record of the gate of its name; one of another name is asked with all inputs together.
    """
    stored = await session.reader.bundle(session.namespace, bundle)
    if stored is None:
        raise CommandError(
            f"there is no Bundle {bundle} in {session.namespace}", remedy="List them: kardinal get bundles"
        )
    promoted = Bundle.model_validate(stored)
    pipeline = await session.pipeline(pipeline_of(promoted))
    situation = await _situation(session, pipeline, environment, promoted)
    results = recorded_results(promoted, environment, situation.instances)
    recorded = {result.name: result.namespace or "" for result in results}
    policies: dict[tuple[str, str], PolicyGate] = {}
    if path is not None:
        for gate in gates_of_file(path):
            policies[recorded.get(gate.metadata.name, gate.metadata.namespace), gate.metadata.name] = gate
    else:
        for template, namespace in recorded.items():
            for stored_gate in await session.reader.gates(namespace):
                if stored_gate["metadata"]["name"] == template:
                    policies[namespace, template] = PolicyGate.model_validate(stored_gate)
    answers = replayed(results, policies, situation)
    if output != "table":
        document = [
            {
                "namespace": each.namespace,
                "name": each.name,
                "recorded": None
                if each.recorded is None
                else {
                    "open": each.recorded.result == "pass",
                    "reason": each.recorded.reason,
                    "evaluatedAt": format_time(each.recorded.evaluated_at) if each.recorded.evaluated_at else None,
                },
                "replayed": {"open": each.answer.ready, "reason": each.answer.reason},
                "same": each.is_same,
            }
            for each in answers
        ]
        print_value({"bundle": bundle, "environment": environment, "gates": document}, output)
        return
    rows = [
        [
            each.name,
            _word(each.recorded.result == "pass") if each.recorded is not None else "-",
            _word(each.answer.ready),
            one_line(each.answer.reason),
        ]
        for each in answers
    ]
    print_table(["GATE", "RECORDED", "REPLAYED", "REASON"], rows, empty="none of its gates exists any more")


async def _pipeline(session: Session, name: str | None, environment: str) -> Pipeline:
    """Return the Pipeline called `name`, or the only one of the namespace that has the environment."""
    if name is not None:
        return await session.pipeline(name)
    known = [Pipeline.model_validate(each) for each in await session.reader.pipelines(session.namespace)]
    having = [each for each in known if any(one.name == environment for one in each.spec.environments)]
    if len(having) == 1:
        return having[0]
    if not having:
        raise CommandError(f"no Pipeline of {session.namespace} has an environment {environment}")
    names = ", ".join(each.metadata.name for each in having)
    raise CommandError(f"{names} have an environment {environment}", remedy="Name one of them.")


async def _situation(session: Session, pipeline: Pipeline, environment: str, bundle: Bundle | None) -> GateSituation:
    known = {each.name: each for each in pipeline.spec.environments}
    if environment not in known:
        raise unknown_environment(pipeline.metadata.name, environment, list(known))
    approval = known[environment].approval
    if bundle is None:
        return GateSituation(environment, approval)
    stored = await session.reader.instances(session.namespace, bundle.metadata.name)
    instances = [PolicyGate.model_validate(each) for each in stored]
    return GateSituation(environment, approval, bundle, instances)


async def _calendar(session: Session, gate: GateTemplate) -> Calendar:
    """Return the calendar of a gate, with the holidays that the user may read."""
    spec = gate.spec
    if spec.holidays is None:
        return Calendar(spec.time_zone)
    named = f"spec.holidays: ConfigMap {gate.namespace}/{spec.holidays}"
    try:
        stored = await session.client.get(CONFIG_MAP, spec.holidays, gate.namespace)
    except NotFound:
        return Calendar(spec.time_zone, holidays_problem=f"{named} does not exist")
    except Forbidden:
        return Calendar(spec.time_zone, holidays_problem=f"you may not read {named}")
    text = (stored.get("data") or {}).get(HOLIDAYS_KEY)
    found = f"it has no key {HOLIDAYS_KEY}" if text is None else parse_holidays(text)
    if isinstance(found, str):
        return Calendar(spec.time_zone, holidays_problem=f"{named}: {found}")
    return Calendar(spec.time_zone, found)


def _print_moment(gates: Sequence[SimulatedGate], at: datetime, output: str) -> None:
    answers = [(each.gate, each.at(at)) for each in gates]
    closed = [gate.name for gate, answer in answers if not answer.ready]
    if output != "table":
        listed = [
            {"name": gate.name, "scope": gate.scope, "open": answer.ready, "reason": answer.reason}
            for gate, answer in answers
        ]
        print_value({"at": format_time(at), "gates": listed, "open": not closed}, output)
        return
    say(f"AT: {at:%A %Y-%m-%d %H:%M:%S} UTC")
    rows = [[gate.name, gate.scope, _word(answer.ready), one_line(answer.reason)] for gate, answer in answers]
    print_table(["GATE", "SCOPE", "ANSWER", "REASON"], rows, empty="no gate stands before the environment")
    say(f"RESULT: BLOCKED by {', '.join(closed)}" if closed else "RESULT: OPEN")


def _print_span(gates: Sequence[SimulatedGate], start: datetime, end: datetime, output: str) -> None:
    found = [(each.gate, each.over(start, end)) for each in gates]
    together = all_open([answers for _, answers in found], start=start, end=end)
    if output != "table":
        listed = [{"name": gate.name, "intervals": list(map(_interval, answers))} for gate, answers in found]
        print_value({"gates": listed, "intervals": list(map(_interval, together))}, output)
        return
    rows = [
        [name, _shown(each.start), _shown(each.end), "open" if each.open else "closed"]
        for name, answers in (*((gate.name, answers) for gate, answers in found), ("all together", together))
        for each in answers
    ]
    print_table(["GATE", "FROM (UTC)", "TO (UTC)", "ANSWER"], rows, empty="")


def _interval(found: Interval) -> dict[str, Any]:
    return {"from": format_time(found.start), "to": format_time(found.end), "open": found.open}


def _shown(moment: datetime) -> str:
    return f"{moment:%a %Y-%m-%d %H:%M:%S}"


def _word(is_open: bool) -> str:
    return state_text("PASS" if is_open else "FAIL")
