"""Explain an owner: which blueprint is chosen and why, and of each of its resources the template and the parameters.

Selectors, options and parameters are judged as a controller judges them; what was stamped comes from the status of the
owner. Reading is up to the caller: `needed_templates` says which templates `explain_owner` wants.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from kardinal.models.base import Condition
from kardinal.objects import JsonObject
from kardinal.objects.errors import KardinalError
from kardinal_supplychain.api.blueprints import ClusterDelivery, ClusterSupplyChain, TemplateReference
from kardinal_supplychain.api.owners import Deliverable, Workload
from kardinal_supplychain.api.status import StampedReference
from kardinal_supplychain.api.templates import TemplateSpec
from kardinal_supplychain.blueprints.options import chosen_option, option_name, verdicts
from kardinal_supplychain.blueprints.params import ResolvedParam, resolve_params
from kardinal_supplychain.blueprints.select import Failing, OwnerSelector, SelectorVerdict, judge, winners
from kardinal_supplychain.blueprints.validate import blueprint_problems
from kardinal_supplychain.realize.conditions import matched_several, not_matched, words_of

__all__ = [
    "ExplainedResource",
    "JudgedSelector",
    "OwnerExplanation",
    "TemplateKey",
    "Verdict",
    "chosen_blueprint",
    "explain_owner",
    "needed_templates",
]

AnyBlueprint = ClusterSupplyChain | ClusterDelivery
AnyOwner = Workload | Deliverable

TemplateKey = tuple[str, str]
"""Kind and name of a template."""

Verdict = Literal["Chosen", "Tied", "Outscored", "NotMatched", "Empty"]
"""The outcome of a selector: `Outscored` matches with fewer requirements than another one, `Empty` has none."""


@dataclass(frozen=True, slots=True)
class JudgedSelector:
    """The outcome of the selector of a blueprint, or of an option; `failing` is the first requirement not to hold."""

    name: str
    verdict: Verdict
    score: int
    failing: Failing | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedResource:
    """One resource of the chosen blueprint.

    `template` is empty if no option was chosen, or if the chosen one passes the input `passes` through. `error` says
    why there is no template. `stamped` and `conditions` are those of the status.
    """

    name: str
    template_kind: str
    template: str = ""
    passes: str = ""
    options: tuple[JudgedSelector, ...] = ()
    params: Mapping[str, ResolvedParam] = field(default_factory=dict)
    error: str = ""
    stamped: StampedReference | None = None
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerExplanation:
    """An owner with all blueprints of its kind, the resources of the chosen one, and its own conditions.

    `result` sums up, such as `READY`, or `WAITING: MissingValueAtPath: …`.
    """

    owner: AnyOwner
    blueprint_kind: str
    blueprints: tuple[JudgedSelector, ...]
    resources: tuple[ExplainedResource, ...]
    result: str


def chosen_blueprint(stored: JsonObject, blueprints: Sequence[AnyBlueprint]) -> AnyBlueprint | None:
    """Return the blueprint that is chosen for an owner; None if none matches, or several are tied."""
    won = winners(_judged(stored, blueprints))
    return blueprints[won[0]] if len(won) == 1 else None


def needed_templates(stored: JsonObject, blueprint: AnyBlueprint) -> set[TemplateKey]:
    """Return the templates of a blueprint for an owner, as far as options can be chosen."""
    needed = set[TemplateKey]()
    for resource in blueprint.spec.resources:
        reference = resource.template_ref
        try:
            option = chosen_option(reference, stored, place="")
        except KardinalError:
            continue
        name = reference.name if option is None else option.name
        if name is not None:
            needed.add((reference.kind, name))
    return needed


def explain_owner(
    stored: JsonObject,
    owner: AnyOwner,
    blueprints: Sequence[AnyBlueprint],
    *,
    blueprint_kind: str,
    templates: Mapping[TemplateKey, TemplateSpec | str],
) -> OwnerExplanation:
    """Return the explanation of an owner, which is `stored` as an API server has it.

    `templates` has, for each of `needed_templates`, its spec, or a sentence that says why it cannot be read.
    """
    judged = _judged(stored, blueprints)
    selectors = [OwnerSelector.of_blueprint(blueprint.spec) for blueprint in blueprints]
    names = [blueprint.metadata.name for blueprint in blueprints]
    listed = sorted(_outcomes(names, selectors, judged), key=lambda each: (each.verdict != "Chosen", -each.score))
    chosen = chosen_blueprint(stored, blueprints)
    return OwnerExplanation(
        owner=owner,
        blueprint_kind=blueprint_kind,
        blueprints=tuple(listed),
        resources=tuple(_resources(stored, owner, chosen, templates)) if chosen else (),
        result=_result(owner, chosen, is_tie=len(winners(judged)) > 1),
    )


def _judged(stored: JsonObject, blueprints: Sequence[AnyBlueprint]) -> list[SelectorVerdict]:
    return [judge(OwnerSelector.of_blueprint(blueprint.spec), stored) for blueprint in blueprints]


def _outcomes(
    names: Sequence[str], selectors: Sequence[OwnerSelector], judged: Sequence[SelectorVerdict]
) -> Iterator[JudgedSelector]:
    won = winners(judged)
    for index, (name, selector, each) in enumerate(zip(names, selectors, judged, strict=True)):
        verdict: Verdict
        if index in won:
            verdict = "Chosen" if len(won) == 1 else "Tied"
        elif each.failing is not None:
            verdict = "NotMatched"
        else:
            verdict = "Outscored" if selector.size else "Empty"
        yield JudgedSelector(name, verdict, each.score, each.failing)


def _resources(
    stored: JsonObject,
    owner: AnyOwner,
    blueprint: AnyBlueprint,
    templates: Mapping[TemplateKey, TemplateSpec | str],
) -> Iterator[ExplainedResource]:
    words = words_of(owner.resource.kind)
    states = {state.name: state for state in owner.status.resources}
    for resource in blueprint.spec.resources:
        reference = resource.template_ref
        template = ""
        passes = ""
        error = ""
        params: Mapping[str, ResolvedParam] = {}
        try:
            place = f"resource [{resource.name}] in {words.blueprint} [{blueprint.metadata.name}]"
            option = chosen_option(reference, stored, place=place)
        except KardinalError as failure:
            error = failure.message
        else:
            template = (reference.name if option is None else option.name) or ""
            passes = (option.pass_through if option else None) or ""
        if template:
            found = templates[reference.kind, template]
            if isinstance(found, str):
                error = found
            else:
                params = resolve_params(
                    template=found.params,
                    blueprint=blueprint.spec.params,
                    resource=resource.params,
                    owner=owner.spec.params,
                )
        state = states.get(resource.name)
        yield ExplainedResource(
            name=resource.name,
            template_kind=reference.kind,
            template=template,
            passes=passes,
            options=_options(reference, stored),
            params=params,
            error=error,
            stamped=state.stamped_ref if state else None,
            conditions=state.conditions if state else (),
        )


def _options(reference: TemplateReference, stored: JsonObject) -> tuple[JudgedSelector, ...]:
    options = reference.options or ()
    selectors = [OwnerSelector.of_option(option.selector) for option in options]
    return tuple(_outcomes(list(map(option_name, options)), selectors, verdicts(options, stored)))


def _result(owner: AnyOwner, blueprint: AnyBlueprint | None, *, is_tie: bool) -> str:
    words = words_of(owner.resource.kind)
    if blueprint is None:
        finding = matched_several(words) if is_tie else not_matched(words, owner.metadata.labels)
        return f"NOT MATCHED: {finding.message}"
    problem = next(blueprint_problems(blueprint), None)
    if problem is not None:
        return f"INVALID: {blueprint.resource.kind}/{blueprint.metadata.name} {problem}"
    ready = owner.status.condition("Ready")
    if ready is None:
        return "PENDING: no controller has looked at it yet"
    if owner.status.observed_generation not in (None, owner.metadata.generation):
        return "PENDING: the controller has not seen the last change yet"
    if ready.status == "True":
        return "READY"
    said = ready.message or _first_trouble(owner)
    return f"{'FAILED' if ready.status == 'False' else 'WAITING'}: {': '.join(filter(None, (ready.reason, said)))}"


def _first_trouble(owner: AnyOwner) -> str:
    """Return what the first resource that is not ready says of itself."""
    for resource in owner.status.resources:
        for each in resource.conditions:
            if each.type == "Ready" and each.status != "True":
                said = f"{each.reason}: {each.message}" if each.message else each.reason
                return f"resource {resource.name}: {said}"
    return ""
