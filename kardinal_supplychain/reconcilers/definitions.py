"""Blueprints and templates as models. Each is made once of a generation, because an owner needs them in each run."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import structlog
from pydantic import ValidationError

from kardinal.models.base import Resource
from kardinal.objects import JsonObject, ResourceType
from kardinal.runtime import Informer, Manager
from kardinal_supplychain.api.blueprints import ClusterDelivery, ClusterSupplyChain
from kardinal_supplychain.api.kinds import CLUSTER_DELIVERY, CLUSTER_SUPPLY_CHAIN, TEMPLATES
from kardinal_supplychain.api.templates import (
    TEMPLATE_MODELS,
    TemplateSpec,
)
from kardinal_supplychain.realize.conditions import Finding
from kardinal_supplychain.realize.readiness import blueprint_findings, template_names

__all__ = ["BY_TEMPLATE", "AnyBlueprint", "Definitions"]

BY_TEMPLATE: Final = "template"
"""The index of blueprints by the templates that they name, such as `ClusterImageTemplate/kpack`."""

AnyBlueprint = ClusterSupplyChain | ClusterDelivery

_BLUEPRINTS: Mapping[ResourceType, type[ClusterSupplyChain] | type[ClusterDelivery]] = {
    CLUSTER_SUPPLY_CHAIN: ClusterSupplyChain,
    CLUSTER_DELIVERY: ClusterDelivery,
}

R = TypeVar("R", bound=Resource)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Made:
    version: tuple[str, int]
    model: Any


@dataclass(frozen=True, slots=True)
class _Judged:
    """The conditions of a blueprint with these templates."""

    blueprint: AnyBlueprint
    templates: Sequence[TemplateSpec | None]
    findings: tuple[Finding, ...]

    def holds_for(self, blueprint: AnyBlueprint, templates: Sequence[TemplateSpec | None]) -> bool:
        return (
            self.blueprint is blueprint
            and len(self.templates) == len(templates)
            and all(map(operator.is_, self.templates, templates))
        )


class Definitions:
    """The blueprints and templates of the cluster."""

    def __init__(self, manager: Manager) -> None:
        self.blueprints: Mapping[ResourceType, Informer] = {each: manager.informer(each) for each in _BLUEPRINTS}
        self.templates: Mapping[str, Informer] = {kind: manager.informer(each) for kind, each in TEMPLATES.items()}
        for informer in self.blueprints.values():
            informer.index(BY_TEMPLATE, _templates_of)
        self._made: dict[tuple[str, str], _Made] = {}
        self._judged: dict[tuple[str, str], _Judged] = {}

    def blueprint(self, resource: ResourceType, name: str) -> AnyBlueprint | None:
        """Return a blueprint; None if there is none, or if it cannot be read."""
        obj = self.blueprints[resource].get(None, name)
        return self._model(_BLUEPRINTS[resource], obj, resource.kind, name)

    @staticmethod
    def read_blueprint(resource: ResourceType, obj: JsonObject) -> AnyBlueprint | None:
        """Return a blueprint as it is or was; None if it cannot be read."""
        return _read(_BLUEPRINTS[resource], obj)

    def all_blueprints(self, resource: ResourceType) -> Iterator[AnyBlueprint]:
        """Yield the blueprints of a kind by name."""
        for obj in sorted(self.blueprints[resource].list(), key=lambda each: str(each["metadata"]["name"])):
            if (found := self.blueprint(resource, obj["metadata"]["name"])) is not None:
                yield found

    def findings(self, blueprint: AnyBlueprint) -> tuple[Finding, ...]:
        """Return the conditions of a blueprint, which are computed once for the same blueprint and templates."""
        templates = [self.template(kind, name) for kind, name in template_names(blueprint)]
        key = (blueprint.resource.kind, blueprint.metadata.name)
        judged = self._judged.get(key)
        if judged is None or not judged.holds_for(blueprint, templates):
            findings = blueprint_findings(blueprint, self.template)
            judged = self._judged[key] = _Judged(blueprint, templates, findings)
        return judged.findings

    def template(self, kind: str, name: str) -> TemplateSpec | None:
        """Return the spec of a template; None if there is none, or if it cannot be read."""
        model = self._model(TEMPLATE_MODELS[kind], self.templates[kind].get(None, name), kind, name)
        spec: TemplateSpec | None = getattr(model, "spec", None)
        return spec

    def _model(self, model: type[R], obj: JsonObject | None, kind: str, name: str) -> R | None:
        if obj is None:
            self._made.pop((kind, name), None)
            self._judged.pop((kind, name), None)
            return None
        version = (obj["metadata"]["uid"], obj["metadata"]["generation"])
        made = self._made.get((kind, name))
        if made is None or made.version != version:
            made = self._made[kind, name] = _Made(version, _read(model, obj))
        found: R | None = made.model
        return found


def _read(model: type[R], obj: JsonObject) -> R | None:
    try:
        return model.model_validate(obj)
    except ValidationError as error:
        # The schema of the API server refuses this, unless another version of it is installed.
        places = sorted({".".join(map(str, each["loc"])) for each in error.errors()})
        log.warning("an object cannot be read", kind=model.resource.kind, name=obj["metadata"]["name"], fields=places)
        return None


def _templates_of(blueprint: JsonObject) -> Iterable[str]:
    for resource in blueprint["spec"].get("resources") or ():
        reference = resource["templateRef"]
        for named in (reference, *(reference.get("options") or ())):
            if "name" in named:
                yield f"{reference['kind']}/{named['name']}"
