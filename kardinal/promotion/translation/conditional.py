"""Conditional environments: `environments[].when`, a condition over the Bundle alone (pure).

A Bundle for which the condition is false leaves the environment out, as if it skipped it: dependents wait for the
environments before it, and an org gate there demands a skip permission. A condition without an answer, because a label
is missing, is a problem of the Bundle or the Pipeline: it neither leaves an environment out nor promotes to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from kardinal import cel
from kardinal.promotion.api import Bundle
from kardinal.promotion.api.pipeline import Environment
from kardinal.promotion.policy.attributes import unserved
from kardinal.promotion.policy.context import GateContext
from kardinal.promotion.policy.evaluate import evaluate
from kardinal.promotion.steps.expressions import EXPRESSIONS_LIMIT
from kardinal.promotion.translation.errors import Problem

__all__ = ["left_out", "when_fault"]

_KNOWN = ("name", "version", "type", "labels", "provenance", "intent")
"""The attributes of a Bundle that are known before it starts and that time does not change."""

_NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)


def when_fault(expression: str) -> str | None:
    """Return why a condition can be evaluated for no Bundle; None if it can."""
    try:
        program = cel.compile(expression)
    except cel.CompileError as error:
        return f"it is not valid CEL: {error}"
    if program.volatile:
        return "it reads the time; a condition reads the Bundle alone"
    for reference in sorted(program.references, key=str):
        if reference.root != "bundle" or reference.path[:1] not in [(name,) for name in _KNOWN]:
            known = ", ".join(f"bundle.{name}" for name in _KNOWN)
            return f"it reads {reference}; a condition reads {known}"
    return unserved(program)


def left_out(environments: Iterable[Environment], bundle: Bundle) -> tuple[dict[str, str], list[Problem]]:
    """Return the environments whose condition is false, with the values it has read, and the problems of others.

    Conditions of more than `EXPRESSIONS_LIMIT` characters together are not read: their Pipeline is refused for it.
    """
    found: dict[str, str] = {}
    problems: list[Problem] = []
    environments = list(environments)
    if sum(len(environment.when or "") for environment in environments) > EXPRESSIONS_LIMIT:
        return found, problems
    for index, environment in enumerate(environments):
        # One with a fault is a problem of the Pipeline, which keeps its Bundles back.
        if environment.when is None or when_fault(environment.when):
            continue
        context = GateContext(bundle, environment.name, environment.approval)
        answer = evaluate(environment.when, context, now=_NO_TIME)
        if answer.result == "fail":
            found[environment.name] = answer.reason
        elif answer.result == "error":
            problems.append(
                Problem(
                    f"Bundle/{bundle.metadata.name}",
                    f"spec.environments[{index}].when",
                    "WhenUndecided",
                    f"whether the Bundle goes to {environment.name} is not known: {answer.reason}",
                    "give the Bundle what it reads, or test for it with has()",
                )
            )
    return found, problems
