"""Generate CustomResourceDefinitions from models.

They decide the output of `kubectl get` and `kubectl explain`: short names, categories, printer columns and
descriptions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kardinal.models.base import Model, Resource
from kardinal.models.descriptions import field_descriptions
from kardinal.models.schema import structural_schema

__all__ = [
    "AGE",
    "MESSAGE",
    "READY",
    "REASON",
    "Column",
    "DefinedKind",
    "definition",
    "spec_schema",
    "write_definitions",
]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; a `wide` one is printed with `-o wide` only."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False

    def to_json(self) -> dict[str, Any]:
        column = {"name": self.name, "type": self.type, "jsonPath": self.path}
        return column | {"priority": 1} if self.wide else column


READY = Column("Ready", '.status.conditions[?(@.type=="Ready")].status')
REASON = Column("Reason", '.status.conditions[?(@.type=="Ready")].reason')
MESSAGE = Column("Message", '.status.conditions[?(@.type=="Ready")].message', wide=True)
AGE = Column("Age", ".metadata.creationTimestamp", "date")


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinedKind:
    """A kind with what its definition says beside the schema; its scope is that of `model.resource`.

    A kind whose model has no `status` has no subresource `status` either.
    """

    model: type[Resource]
    short_name: str = ""
    columns: tuple[Column, ...] = (AGE,)
    categories: tuple[str, ...] = ()


def definition(kind: DefinedKind) -> dict[str, Any]:
    """Return the CustomResourceDefinition of a kind, ready to be applied."""
    resource = kind.model.resource
    names: dict[str, Any] = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.kind.lower(),
    }
    if kind.categories:
        names["categories"] = list(kind.categories)
    if kind.short_name:
        names["shortNames"] = [kind.short_name]
    version: dict[str, Any] = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _schema(kind.model)},
    }
    if "status" in kind.model.model_fields:
        version["subresources"] = {"status": {}}
    version["additionalPrinterColumns"] = [column.to_json() for column in kind.columns]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": names,
            "versions": [version],
        },
    }


def spec_schema(model: type[Resource]) -> dict[str, Any]:
    """Return the schema of the `spec` of a kind."""
    return structural_schema(_field_model(model, "spec"), defaults=True)


def write_definitions(definitions: Iterable[dict[str, Any]], directory: Path) -> Iterator[Path]:
    """Write each definition to `directory` as `<group>_<plural>.yaml`, and yield its path."""
    directory.mkdir(parents=True, exist_ok=True)
    for each in definitions:
        path = directory / f"{each['spec']['group']}_{each['spec']['names']['plural']}.yaml"
        path.write_text(yaml.dump(each, Dumper=yaml.CSafeDumper, sort_keys=False, width=120))
        yield path


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
    """Return the first sentence of the docstring of the class; without one, of the module that defines it."""
    essay = model.__dict__.get("__doc__") or sys.modules[model.__module__].__doc__ or model.__name__
    return essay.partition(" (")[0].partition("\n")[0]
