"""The route of one Bundle through the environments of its Pipeline (pure).

`intent.target` removes every environment that does not lead to the target or to an environment that was requested
later. A rollback goes only to the environments that it names, without waiting for their upstreams. A skipped
environment is removed, and its dependents wait for its upstreams instead; with the Graph's `includeWhen`, all
environments behind the skipped one would be removed, too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from kardinal.objects.suggestions import nearest
from kardinal.promotion.api import Bundle, Pipeline
from kardinal.promotion.api.bundle import EnvironmentStatus
from kardinal.promotion.translation.conditional import left_out
from kardinal.promotion.translation.environment_order import OrderError, ancestors, topological, upstreams
from kardinal.promotion.translation.errors import InvalidSpec, Problem

__all__ = ["Route", "find_route", "order_problems", "remaining"]


@dataclass(frozen=True, slots=True)
class Route:
    """The upstreams of each environment that a Bundle goes to, upstreams first, and the skipped environments."""

    upstreams: Mapping[str, tuple[str, ...]]
    skipped: tuple[str, ...]
    """The environments that `intent.skip` names, and those whose condition `when` is false."""
    pipeline: Mapping[str, tuple[str, ...]]
    """The upstreams of every environment of the Pipeline, whether or not the Bundle goes there."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Environment whose condition `when` is false -> the values that it has read."""

    def up_to(self, environment: str) -> set[str]:
        """Return `environment` and all of its direct and indirect upstreams in the Pipeline."""
        return {environment, *ancestors(self.pipeline, environment)}


def order_problems(pipeline: Pipeline) -> tuple[Problem, ...]:
    """Return the problem that keeps the environments of a Pipeline from being ordered; empty if there is none."""
    try:
        upstreams(pipeline.spec.environments)
    except OrderError as error:
        return (Problem(f"Pipeline/{pipeline.metadata.name}", error.field, error.reason, error.message),)
    return ()


def find_route(pipeline: Pipeline, bundle: Bundle) -> Route:
    """Return the route of a Bundle.

    Raises `InvalidSpec` if the environments have no order, the intent names an unknown environment, or a condition
    `when` has no answer.
    """
    if problems := order_problems(pipeline):
        raise InvalidSpec(problems)
    edges = upstreams(pipeline.spec.environments)
    order = topological(edges)
    if unknown := _unknown(bundle, order):
        raise InvalidSpec(unknown)
    intent = bundle.spec.intent
    if intent.rollback is not None:
        return Route({name: edges[name] for name in order if name in intent.rollback.environments}, (), edges)
    asked = [name for name, entry in bundle.status.environments.items() if entry.request and name in edges]
    ends = [intent.target, *asked] if intent.target else order
    cut = {*ends, *(before for end in ends for before in ancestors(edges, end))}
    conditional, undecided = left_out([each for each in pipeline.spec.environments if each.name in cut], bundle)
    if undecided:
        raise InvalidSpec(undecided)
    skipped = tuple(name for name in order if name in cut and (name in intent.skip or name in conditional))
    kept = [name for name in order if name in cut and name not in skipped]
    subject = f"Bundle/{bundle.metadata.name}"
    if not kept:
        message = "every environment on the way is skipped or left out: there is nothing to promote"
        raise InvalidSpec([Problem(subject, "spec.intent.skip", "SkipsEverything", message, "skip fewer")])
    if intent.target in skipped:
        why = f": its condition when is false ({conditional[intent.target]})" if intent.target in conditional else ""
        message = f"the target {intent.target} is skipped{why}"
        remedy = "take it out of skip, or choose an earlier target"
        raise InvalidSpec([Problem(subject, "spec.intent.target", "SkipsTarget", message, remedy)])
    return Route({name: _rewired(name, edges, skipped) for name in kept}, skipped, edges, conditional)


def remaining(
    upstreams: Mapping[str, Sequence[str]], entries: Mapping[str, EnvironmentStatus], *, there: Collection[str] = ()
) -> list[str]:
    """Return the environments, upstreams first, that a Bundle still has to go to.

    `entries` are the environments in its status. An environment that has ended, or in which another Bundle has
    superseded this one, is visited again only after a request, which starts a new entry. Its dependents are left out as
    well, unless the Bundle was Verified in it. `there` are environments that have a node in the Graph already. An
    upstream that the route leaves out is not waited for.
    """
    found: list[str] = []
    for name, before in upstreams.items():
        entry = entries.get(name)
        is_over = entry is not None and (entry.has_ended or entry.displaced_by is not None)
        if is_over or name in there:
            continue
        if all(
            each in found or each in there or each not in upstreams or _is_verified(entries.get(each))
            for each in before
        ):
            found.append(name)
    return found


def _is_verified(entry: EnvironmentStatus | None) -> bool:
    return entry is not None and entry.state == "Verified"


def _unknown(bundle: Bundle, known: Sequence[str]) -> list[Problem]:
    subject = f"Bundle/{bundle.metadata.name}"
    intent = bundle.spec.intent
    problems = []
    if intent.target and intent.target not in known:
        problems.append(_problem(subject, "spec.intent.target", "UnknownTarget", intent.target, known))
    for index, name in enumerate(intent.skip):
        if name not in known:
            problems.append(_problem(subject, f"spec.intent.skip[{index}]", "UnknownEnvironment", name, known))
    for index, name in enumerate(intent.rollback.environments if intent.rollback is not None else ()):
        if name not in known:
            field = f"spec.intent.rollback.environments[{index}]"
            problems.append(_problem(subject, field, "UnknownEnvironment", name, known))
    return problems


def _problem(subject: str, field: str, reason: str, name: str, known: Sequence[str]) -> Problem:
    near = nearest(name, known)
    remedy = f"did you mean {near}?" if near else f"there are: {', '.join(known)}"
    return Problem(subject, field, reason, f"the Pipeline has no environment {name}", remedy)


def _rewired(name: str, edges: Mapping[str, tuple[str, ...]], skipped: Sequence[str]) -> tuple[str, ...]:
    """Return the upstreams of `name`, with each skipped one replaced by its own upstreams."""
    found: dict[str, None] = {}
    for upstream in edges[name]:
        found |= dict.fromkeys(_rewired(upstream, edges, skipped) if upstream in skipped else (upstream,))
    return tuple(found)
