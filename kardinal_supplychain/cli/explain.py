"""`kardinal explain workload/NAME` and `deliverable/NAME`: how a blueprint was chosen, and what follows from it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from kardinal.cli.errors import CommandError
from kardinal.cli.output import one_line, print_table, print_value, say, say_labelled, state_text
from kardinal.cli.session import Session
from kardinal.kube import NotFound
from kardinal.models.base import Condition
from kardinal.objects import JsonObject
from kardinal.objects.text import cut
from kardinal_supplychain.api.blueprints import ClusterDelivery, ClusterSupplyChain
from kardinal_supplychain.api.kinds import TEMPLATES
from kardinal_supplychain.api.owners import Deliverable, Workload
from kardinal_supplychain.api.templates import (
    TEMPLATE_MODELS,
    TemplateSpec,
)
from kardinal_supplychain.cli.reading import read_all, read_named
from kardinal_supplychain.realize.explanation import (
    ExplainedResource,
    JudgedSelector,
    OwnerExplanation,
    TemplateKey,
    chosen_blueprint,
    explain_owner,
    needed_templates,
)

__all__ = ["explain_deliverable", "explain_workload"]

_SHOWN_VALUE = 200
"""The most characters of the value of a parameter in a table."""


async def explain_workload(session: Session, name: str, output: str) -> None:
    """Print which supply chain is chosen for a Workload, with its resources and conditions."""
    await _explain(session, Workload, ClusterSupplyChain, name, output)


async def explain_deliverable(session: Session, name: str, output: str) -> None:
    """Print which delivery is chosen for a Deliverable, with its resources and conditions."""
    await _explain(session, Deliverable, ClusterDelivery, name, output)


async def _explain(
    session: Session,
    owner_model: type[Workload | Deliverable],
    blueprint_model: type[ClusterSupplyChain | ClusterDelivery],
    name: str,
    output: str,
) -> None:
    stored = await read_named(session, owner_model.resource, name)
    try:
        owner = owner_model.model_validate(stored)
    except ValidationError as error:
        raise CommandError(f"{owner_model.resource.kind} {name} cannot be read: {_first(error)}") from None
    blueprints = []
    for each in await read_all(session, blueprint_model.resource):
        try:
            blueprints.append(blueprint_model.model_validate(each))
        except ValidationError as error:
            place = f"{blueprint_model.resource.kind} {each['metadata']['name']}"
            say(f"Note: {place} is left out, because it cannot be read: {one_line(_first(error))}", err=True)
    chosen = chosen_blueprint(stored, blueprints)
    needed = sorted(needed_templates(stored, chosen)) if chosen else []
    found = await asyncio.gather(*(_template(session, *key) for key in needed))
    templates: dict[TemplateKey, TemplateSpec | str] = dict(zip(needed, found, strict=True))
    explanation = explain_owner(
        stored, owner, blueprints, blueprint_kind=blueprint_model.resource.kind, templates=templates
    )
    if output != "table":
        print_value(_document(explanation), output)
        return
    _print(explanation)


async def _template(session: Session, kind: str, name: str) -> TemplateSpec | str:
    """Return the spec of a template, or why it cannot be read."""
    try:
        stored = await session.client.get(TEMPLATES[kind], name)
    except NotFound:
        return f"there is no {kind} {name}"
    try:
        return TEMPLATE_MODELS[kind].model_validate(stored).spec
    except ValidationError as error:
        return f"{kind} {name} cannot be read: {_first(error)}"


def _first(error: ValidationError) -> str:
    detail = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}"


def _document(explanation: OwnerExplanation) -> JsonObject:
    owner = explanation.owner
    return {
        "kind": owner.resource.kind,
        "namespace": owner.metadata.namespace,
        "name": owner.metadata.name,
        "blueprints": [
            {"kind": explanation.blueprint_kind, **_selector_document(each)} for each in explanation.blueprints
        ],
        "resources": list(map(_resource_document, explanation.resources)),
        "conditions": [condition.to_json() for condition in owner.status.conditions],
        "result": explanation.result,
    }


def _resource_document(resource: ExplainedResource) -> JsonObject:
    document: dict[str, Any] = {
        "name": resource.name,
        "templateRef": {"kind": resource.template_kind, "name": resource.template} if resource.template else None,
        "passThrough": resource.passes or None,
        "options": list(map(_selector_document, resource.options)),
        "params": {name: {"value": each.value, "from": each.layer} for name, each in resource.params.items()},
        "error": resource.error or None,
        "stampedRef": resource.stamped.to_json() if resource.stamped else None,
        "conditions": [condition.to_json() for condition in resource.conditions],
    }
    return {key: value for key, value in document.items() if value is not None}


def _selector_document(judged: JudgedSelector) -> JsonObject:
    document: JsonObject = {"name": judged.name, "verdict": judged.verdict, "score": judged.score}
    if judged.failing is not None:
        failing = {"requirement": judged.failing.requirement, "error": judged.failing.error}
        document["failing"] = {key: value for key, value in failing.items() if value}
    return document


def _print(explanation: OwnerExplanation) -> None:
    owner = explanation.owner
    resources = explanation.resources
    say(f"{owner.resource.kind.upper()}: {owner.metadata.namespace}/{owner.metadata.name}\n")
    print_table(
        [explanation.blueprint_kind.upper(), "SCORE", "VERDICT"],
        [[each.name, str(each.score), _why(each)] for each in explanation.blueprints],
        empty=f"There is no {explanation.blueprint_kind}.",
        prose=("VERDICT",),
    )
    _section(["RESOURCE", "TEMPLATE", "OBJECT", "READY", "WHY"], list(map(_resource_row, resources)), ("WHY",))
    options = [
        [resource.name, option.name, str(option.score), _why(option)]
        for resource in resources
        for option in resource.options
    ]
    _section(["RESOURCE", "OPTION", "SCORE", "VERDICT"], options, ("VERDICT",))
    _section(["RESOURCE", "PARAM", "FROM", "VALUE"], list(_params(resources)), ("VALUE",))
    conditions = [
        [each.type, state_text(each.status), each.reason, one_line(each.message)] for each in owner.status.conditions
    ]
    _section(["CONDITION", "STATUS", "REASON", "MESSAGE"], conditions, ("MESSAGE",))
    say()
    say_labelled("RESULT: ", one_line(explanation.result))


def _section(headers: Sequence[str], rows: Sequence[Sequence[str]], prose: Sequence[str]) -> None:
    """Print a table after an empty line, unless it has no row."""
    if rows:
        say()
        print_table(headers, rows, empty="", prose=prose)


def _why(judged: JudgedSelector) -> str:
    failing = judged.failing
    if failing is not None and failing.error:
        return one_line(f"{failing.requirement} cannot be evaluated: {failing.error}")
    if failing is not None:
        return one_line(f"{failing.requirement} does not hold")
    said: Mapping[str, str] = {
        "Chosen": "chosen",
        "Tied": "tied: another one matches with as many requirements",
        "Outscored": "matches, but another one has more requirements",
        "Empty": "has no requirement, and so matches nothing",
    }
    return said[judged.verdict]


def _resource_row(resource: ExplainedResource) -> list[str]:
    template = f"{resource.template_kind}/{resource.template}"
    if resource.passes:
        template = f"passes {resource.passes} through"
    elif not resource.template:
        template = resource.template_kind
    stamped = resource.stamped
    ready = next((each for each in resource.conditions if each.type == "Ready"), None)
    return [
        resource.name,
        template,
        f"{stamped.kind}/{stamped.name}" if stamped else "",
        state_text(ready.status) if ready else "",
        one_line(resource.error or _trouble(ready)),
    ]


def _trouble(ready: Condition | None) -> str:
    if ready is None or ready.status == "True":
        return ""
    return f"{ready.reason}: {ready.message}" if ready.message else ready.reason


def _params(resources: Sequence[ExplainedResource]) -> Iterator[list[str]]:
    for resource in resources:
        for name, param in resource.params.items():
            text = param.value if isinstance(param.value, str) else json.dumps(param.value, ensure_ascii=False)
            yield [resource.name, name, param.layer, cut(one_line(text), _SHOWN_VALUE)]
