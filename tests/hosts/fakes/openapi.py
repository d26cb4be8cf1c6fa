"""Hold requests and answers against an OpenAPI 3.0 description, and complete answers from it.

A fake host makes up only what a test is about; every other field that the description requires is filled in from the
description. So an answer always has the whole published shape, and none of it comes from kardinal's own client.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jsonschema
from jsonschema import Draft4Validator, validators
from referencing import Registry
from referencing.jsonschema import DRAFT202012

__all__ = ["Description", "Operation"]

_ROOT = "urn:description"
_ERRORS_EVERYWHERE = frozenset({401, 403, 404, 429, 500, 502, 503, 504})
"""Statuses that a host may answer to any request, described or not."""

_MISSING: Any = object()
_BY_FORMAT = {"uri": "https://host.example/", "date-time": "2026-01-06T09:00:00Z", "email": "robot@host.example"}
_BY_TYPE: dict[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False}


def _type(validator: Any, types: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    """Allow null where OpenAPI 3.0 says `nullable`."""
    if instance is not None or not schema.get("nullable"):
        yield from Draft4Validator.VALIDATORS["type"](validator, types, instance, schema)


def _enum(validator: Any, enum: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    if instance is not None or not schema.get("nullable"):
        yield from Draft4Validator.VALIDATORS["enum"](validator, enum, instance, schema)


_Validator = validators.extend(Draft4Validator, {"type": _type, "enum": _enum})  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Operation:
    """One method of one path template."""

    method: str
    template: str
    content: Mapping[str, Any]

    @property
    def pointer(self) -> str:
        return f"/paths/{_escaped(self.template)}/{self.method}"


class Description:
    """The published description of a host's API."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        resource = DRAFT202012.create_resource(document)
        self._registry: Registry[Any] = Registry().with_resource(_ROOT, resource)

    @classmethod
    @cache
    def load(cls, path: Path) -> Description:
        """Return the description in a file, read once per process."""
        return cls(json.loads(path.read_bytes()))

    def operation(self, method: str, template: str) -> Operation | None:
        """Return an operation by its method and template, or None where the host has none."""
        content = self._document["paths"].get(template, {}).get(method.lower())
        return None if content is None else Operation(method.lower(), template, content)

    def request_problems(self, operation: Operation, *, query: Mapping[str, str], body: Any) -> list[str]:
        """Return what is wrong with a request, parameters and fields that the host does not know included."""
        parameters = [self._resolve(parameter) for parameter in operation.content.get("parameters", [])]
        known = {parameter["name"]: parameter for parameter in parameters if parameter["in"] == "query"}
        problems = [f"unknown query parameter {name}" for name in query if name not in known]
        for name, text in query.items():
            if name in known:
                problems += self._problems(_from_text(text, known[name]["schema"]), known[name]["schema"], f"?{name}")
        described = operation.content.get("requestBody")
        if body is None:
            return problems + (["a body is required"] if described and described.get("required") else [])
        if described is None:
            return [*problems, "this operation takes no body"]
        schema = described["content"]["application/json"]["schema"]
        problems += self._problems(body, schema, "body")
        if isinstance(body, dict):
            problems += [f"unknown field {name} of the body" for name in body if name not in self._properties(schema)]
        return problems

    def answer_problems(self, operation: Operation, status: int, body: Any) -> list[str]:
        """Return what is wrong with an answer."""
        described = operation.content["responses"].get(str(status))
        if described is None:
            return [] if status in _ERRORS_EVERYWHERE else [f"status {status} is not described"]
        schema = self._resolve(described).get("content", {}).get("application/json", {}).get("schema")
        if schema is None:
            return [] if body is None else ["no body is described"]
        return self._problems(body, schema, "answer")

    def completed(self, operation: Operation, status: int, known: Any) -> Any:
        """Return an answer with what is known of it and everything else that its description requires."""
        described = self._resolve(operation.content["responses"][str(status)])
        return self._filled(described["content"]["application/json"]["schema"], known)

    def _problems(self, value: Any, schema: Mapping[str, Any], where: str) -> list[str]:
        validator = _Validator(self._absolute(schema), registry=self._registry)
        return [f"{where}{error.json_path[1:]}: {_short(error)}" for error in validator.iter_errors(value)]

    def _absolute(self, schema: Any) -> Any:
        """Return a schema whose references can be resolved from outside of the document."""
        if isinstance(schema, dict):
            return {
                key: f"{_ROOT}{value}" if key == "$ref" and isinstance(value, str) else self._absolute(value)
                for key, value in schema.items()
                if key not in ("example", "examples")
            }
        return [self._absolute(entry) for entry in schema] if isinstance(schema, list) else schema

    def _resolve(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in schema:
            found: Any = self._document
            for key in schema["$ref"].removeprefix("#/").split("/"):
                found = found[key.replace("~1", "/").replace("~0", "~")]
            schema = found
        return schema

    def _properties(self, schema: Mapping[str, Any]) -> set[str]:
        schema = self._resolve(schema)
        found = set(schema.get("properties", {}))
        for part in (*schema.get("oneOf", ()), *schema.get("anyOf", ()), *schema.get("allOf", ())):
            found |= self._properties(part)
        return found

    def _filled(self, schema: Mapping[str, Any], known: Any) -> Any:
        schema = self._resolve(schema)
        if "allOf" in schema:
            merged: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
            for part in map(self._resolve, schema["allOf"]):
                merged["properties"] |= part.get("properties", {})
                merged["required"] += part.get("required", [])
            return self._filled(merged, known)
        choices = schema.get("oneOf") or schema.get("anyOf")
        if choices:
            return self._chosen(choices, known)
        if known is _MISSING and schema.get("nullable"):
            return None
        if schema.get("type") == "array" or isinstance(known, list):
            return [self._filled(schema["items"], entry) for entry in ([] if known is _MISSING else known)]
        if schema.get("type") == "object" and known is not None:
            return self._filled_object(schema, {} if known is _MISSING else known)
        return _default(schema) if known is _MISSING else known

    def _chosen(self, choices: list[Mapping[str, Any]], known: Any) -> Any:
        """Return what is known, completed by the first of the choices that it then is."""
        for schema in choices:
            with suppress(AssertionError):
                filled = self._filled(schema, known)
                if not self._problems(filled, schema, ""):
                    return filled
        return known

    def _filled_object(self, schema: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
        properties = schema.get("properties", {})
        if invented := [name for name in known if properties and name not in properties]:
            raise AssertionError(f"the fake host makes up {', '.join(invented)}: the description has no such field")
        wanted = [*known, *(name for name in schema.get("required", ()) if name not in known)]
        return {name: self._filled(properties.get(name, {}), known.get(name, _MISSING)) for name in wanted}


def _default(schema: Mapping[str, Any]) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    return _BY_FORMAT.get(schema.get("format", ""), _BY_TYPE.get(schema.get("type", "")))


def _from_text(text: str, schema: Mapping[str, Any]) -> Any:
    return int(text) if schema.get("type") == "integer" and text.isdecimal() else text


def _short(error: jsonschema.ValidationError) -> str:
    return error.message[:300]


def _escaped(template: str) -> str:
    return quote(template.replace("~", "~0").replace("/", "~1"), safe="~{}")
