"""The CustomResourceDefinitions, generated from the models; `make crds` writes them to `crds/`.

They decide the output of `kubectl get` and `kubectl explain`: short names, the category `kardinal`, printer columns and
descriptions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kardinal.promotion.api.approval import Approval
from kardinal.promotion.api.base import Model, Resource
from kardinal.promotion.api.bundle import Bundle
from kardinal.promotion.api.descriptions import field_descriptions
from kardinal.promotion.api.graph import Graph, GraphRevision
from kardinal.promotion.api.metric_check import MetricCheck
from kardinal.promotion.api.pipeline import Pipeline
from kardinal.promotion.api.policy_gate import PolicyGate
from kardinal.promotion.api.promotion_step import PromotionStep
from kardinal.promotion.api.schema import structural_schema
from kardinal.promotion.api.subscription import Subscription

__all__ = ["definitions", "spec_schema", "write_definitions"]


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    path: str
    type: str = "string"
    wide: bool = False

    def to_json(self) -> dict[str, Any]:
        column = {"name": self.name, "type": self.type, "jsonPath": self.path}
        return column | {"priority": 1} if self.wide else column


@dataclass(frozen=True, slots=True)
class _Kind:
    model: type[Resource]
    short_name: str
    columns: tuple[_Column, ...]


_READY = _Column("Ready", '.status.conditions[?(@.type=="Ready")].status')
_WHY = _Column("Reason", '.status.conditions[?(@.type=="Ready")].reason')
_MESSAGE = _Column("Message", '.status.conditions[?(@.type=="Ready")].message', wide=True)
_AGE = _Column("Age", ".metadata.creationTimestamp", "date")

_KINDS = (
    _Kind(
        Pipeline,
        "pl",
        (
            _Column("Repository", ".spec.git.url"),
            _Column("Branch", ".spec.git.branch", wide=True),
            _READY,
            _WHY,
            _Column("Writable", '.status.conditions[?(@.type=="RepositoryReady")].status'),
            _MESSAGE,
            _Column("Writable-Message", '.status.conditions[?(@.type=="RepositoryReady")].message', wide=True),
            _AGE,
        ),
    ),
    _Kind(
        Bundle,
        "bd",
        (
            _Column("Pipeline", ".status.pipeline"),
            _Column("Version", ".status.version"),
            _Column("Phase", ".status.phase"),
            _READY,
            _MESSAGE,
            _AGE,
        ),
    ),
    _Kind(
        PromotionStep,
        "ps",
        (
            _Column("Pipeline", ".spec.pipeline"),
            _Column("Environment", ".spec.environment"),
            _Column("Bundle", ".spec.bundleRef"),
            _Column("State", ".status.state"),
            _Column("Message", ".status.message"),
            _Column("Pull-Request", ".status.prURL", wide=True),
            _AGE,
        ),
    ),
    _Kind(
        PolicyGate,
        "pg",
        (
            _Column("Scope", ".spec.origin.scope"),
            _Column("Environment", ".spec.origin.environment"),
            _Column("Ready", ".status.ready", "boolean"),
            _Column("Reason", ".status.reason"),
            _Column("Valid", '.status.conditions[?(@.type=="Valid")].status'),
            _Column("Evaluated", ".status.lastEvaluatedAt", "date"),
            _Column("Expression", ".spec.expression", wide=True),
            _Column("Message", '.status.conditions[?(@.type=="Valid")].message', wide=True),
            _AGE,
        ),
    ),
    _Kind(
        Approval,
        "ap",
        (
            _Column("Bundle", ".spec.bundle"),
            _Column("Environment", ".spec.environment"),
            _Column("Gate", ".spec.gate"),
            _Column("External", ".spec.external.name"),
            _Column("Approver", ".spec.approver"),
            _Column("Expires", ".spec.expiresAt", "date"),
            _Column("Reason", ".spec.reason", wide=True),
            _AGE,
        ),
    ),
    _Kind(MetricCheck, "mc", (_Column("Provider", ".spec.provider.type"), _READY, _WHY, _MESSAGE, _AGE)),
    _Kind(
        Subscription,
        "sub",
        (_Column("Pipeline", ".spec.pipeline"), _Column("Source", ".spec.source.type"), _READY, _WHY, _MESSAGE, _AGE),
    ),
    _Kind(
        Graph,
        "gr",
        (
            _READY,
            _WHY,
            _MESSAGE,
            _AGE,
        ),
    ),
    _Kind(GraphRevision, "", (_Column("Generation", ".spec.generation", "integer"), _AGE)),
)


def definitions() -> list[dict[str, Any]]:
    """Return one CustomResourceDefinition per kind, ready to be applied."""
    return [_definition(kind) for kind in _KINDS]


def spec_schema(model: type[Resource]) -> dict[str, Any]:
    """Return the schema of the `spec` of a kind."""
    return structural_schema(_field_model(model, "spec"), defaults=True)


def write_definitions(directory: Path) -> Iterator[Path]:
    """Write each definition to `directory` as `<group>_<plural>.yaml`, and yield its path."""
    directory.mkdir(parents=True, exist_ok=True)
    for definition in definitions():
        path = directory / f"{definition['spec']['group']}_{definition['spec']['names']['plural']}.yaml"
        path.write_text(yaml.dump(definition, Dumper=yaml.CSafeDumper, sort_keys=False, width=120))
        yield path


def _definition(kind: _Kind) -> dict[str, Any]:
    resource = kind.model.resource
    names: dict[str, Any] = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.kind.lower(),
        "categories": ["kardinal"],
    }
    if kind.short_name:
        names["shortNames"] = [kind.short_name]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": names,
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": _schema(kind.model)},
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [column.to_json() for column in kind.columns],
                }
            ],
        },
    }


def _schema(model: type[Resource]) -> dict[str, Any]:
    sentences = {name: {"description": text} for name, text in field_descriptions(model).items()}
    schema: dict[str, Any] = {
        "type": "object",
        "description": _description(model),
        "properties": {
            "apiVersion": {"type": "string", "description": "Group and version of the kind."},
            "kind": {"type": "string", "description": f"`{model.resource.kind}`."},
            "metadata": {"type": "object"},
            **{
                name: {**structural_schema(_field_model(model, name), defaults=name == "spec"), **sentence}
                for name, sentence in sentences.items()
            },
        },
    }
    return schema | {"required": ["spec"]} if model.model_fields["spec"].is_required() else schema


def _field_model(model: type[Resource], field: str) -> type[Model]:
    annotation = model.model_fields[field].annotation
    if not (isinstance(annotation, type) and issubclass(annotation, Model)):
        raise TypeError(f"{model.__name__}.{field} is not a model")
    return annotation


def _description(model: type[Resource]) -> str:
    """Return the first sentence of the docstring of the module that defines the kind."""
    essay = sys.modules[model.__module__].__doc__ or model.__name__
    return essay.partition(" (")[0].partition("\n")[0]


if __name__ == "__main__":
    for written in write_definitions(Path(sys.argv[1] if len(sys.argv) > 1 else "crds")):
        sys.stdout.write(f"{written}\n")
