"""Definitions and schemas to try a server on."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

from tests.local.contract.examples import JsonObject
from tests.local.contract.wire import DEFINITIONS, Answer, Api

__all__ = [
    "BOOLEAN",
    "INTEGER",
    "INT_OR_STRING",
    "NUMBER",
    "TEXT",
    "definition",
    "fields",
    "items",
    "refused_definitions",
    "rule",
    "schema_of",
    "store_values",
    "try_definition",
]

TEXT: JsonObject = {"type": "string"}
INTEGER: JsonObject = {"type": "integer"}
NUMBER: JsonObject = {"type": "number"}
BOOLEAN: JsonObject = {"type": "boolean"}
INT_OR_STRING: JsonObject = {"x-kubernetes-int-or-string": True}


def fields(**properties: Any) -> JsonObject:
    return {"type": "object", "properties": properties}


def items(of: JsonObject, **keywords: Any) -> JsonObject:
    return {"type": "array", "items": of, **keywords}


def rule(text: str, **members: Any) -> JsonObject:
    return {"x-kubernetes-validations": [{"rule": text, **members}]}


def schema_of(**properties: Any) -> JsonObject:
    """The schema of a kind whose spec has these properties."""
    return fields(spec=fields(**properties))


def definition(
    api: Api, schema: JsonObject, *, plural: str = "widgets", kind: str = "Widget", **version: Any
) -> JsonObject:
    """A definition of one version in the group of the test."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{api.group}"},
        "spec": {
            "group": api.group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
            ],
        },
    }


async def try_definition(api: Api, document: JsonObject) -> Answer:
    return await api.post(DEFINITIONS, document, dryRun="All")


async def refused_definitions(api: Api, changes: Iterable[Callable[[JsonObject], object]]) -> None:
    """Each change of a good definition is one too many."""
    good = definition(api, schema_of(a=TEXT))
    for change in changes:
        document = copy.deepcopy(good)
        change(document)
        answer = await try_definition(api, document)
        assert answer.status == 422, answer.body


async def store_values(api: Api, properties: JsonObject, values: dict[str, list[Any]]) -> None:
    """Try each value in the field of its name, one at a time."""
    await api.define(definition(api, schema_of(**properties)))
    path = api.path("widgets", group=api.group)
    for name, tried in values.items():
        for value in tried:
            answer = await api.post(path, api.widget("a", **{name: value}), dryRun="All")
            assert answer.status in (201, 422)
