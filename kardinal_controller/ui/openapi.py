"""The HTTP interface of the page as OpenAPI 3.1, from the models of the documents.

`OPERATIONS` lists every endpoint that is served; `docs/design/page.md` explains them. The TypeScript types of the page
are generated from the schemas by `make docs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic.json_schema import models_json_schema

from kardinal_controller.ui import model
from kardinal_controller.ui.model import (
    ActionAnswer,
    ActionRequest,
    BundleDocument,
    BundleList,
    EnvironmentDocument,
    EventList,
    GateDocument,
    GraphDocument,
    GraphList,
    LoggedIn,
    LogIn,
    Overview,
    PageError,
    PipelineDocument,
    PipelineList,
    View,
    Viewer,
)

__all__ = ["API", "OPERATIONS", "Operation", "document"]

API = "/api/ui/v1"
"""The prefix of all paths, below the base path of the page."""

_PIPELINE = "/pipelines/{namespace}/{name}"
_ENVIRONMENT = f"{_PIPELINE}/environments/{{environment}}"
_GATE = f"{_PIPELINE}/gates/{{environment}}/{{gateNamespace}}/{{gate}}"
_BUNDLE = "/bundles/{namespace}/{name}"
_GRAPH = "/graphs/{namespace}/{name}"
_LIST = ("namespace", "after", "limit")

_IN_PATH = re.compile(r"{(\w+)}")
_QUERY = {
    "namespace": "Only objects of this namespace.",
    "pipeline": "Only Bundles of this Pipeline; needs `namespace`.",
    "bundle": "Name of a Bundle of the Pipeline. Defaults to the Bundle that `kardinal status` shows.",
    "after": "`next` of the page before.",
    "dry-run": "`true`: answer with the plan, and change nothing.",
    "limit": "The most items of a page, 1 to 500. Defaults to 100.",
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One endpoint. `answer` is the model of its document, None for text such as YAML."""

    path: str
    summary: str
    answer: type[View] | None
    query: tuple[str, ...] = ()
    streams: bool = False
    method: str = "GET"
    body: type[View] | None = None


OPERATIONS = (
    Operation("/viewer", "Who looks, and what they may do", Viewer),
    Operation("/pipelines", "Rows of Pipelines", PipelineList, _LIST),
    Operation(_PIPELINE, "A Pipeline with the DAG of a Bundle", PipelineDocument, ("bundle",)),
    Operation(_ENVIRONMENT, "The drawer of an environment", EnvironmentDocument, ("bundle",)),
    Operation(_GATE, "The drawer of a gate", GateDocument, ("bundle",)),
    Operation("/bundles", "Bundles, newest first", BundleList, ("namespace", "pipeline", "after", "limit")),
    Operation(_BUNDLE, "A Bundle", BundleDocument),
    Operation("/graphs", "Rows of Graphs", GraphList, _LIST),
    Operation(_GRAPH, "A Graph", GraphDocument),
    Operation("/events", "The Events about a Bundle, read as the viewer", EventList, ("namespace", "bundle")),
    Operation("/yaml/{kind}/{namespace}/{name}", "An object as YAML, read as the viewer", None),
    Operation("/stream/overview", "The stream of the overview", Overview, ("namespace",), streams=True),
    Operation(f"/stream{_PIPELINE}", "The stream of a Pipeline", PipelineDocument, ("bundle",), streams=True),
    Operation(f"/stream{_ENVIRONMENT}", "The stream of an environment", EnvironmentDocument, ("bundle",), streams=True),
    Operation(f"/stream{_GATE}", "The stream of a gate", GateDocument, ("bundle",), streams=True),
    Operation(f"/stream{_BUNDLE}", "The stream of a Bundle", BundleDocument, streams=True),
    Operation(f"/stream{_GRAPH}", "The stream of a Graph", GraphDocument, streams=True),
    Operation(
        "/actions/{action}",
        "An action as the viewer, or its plan",
        ActionAnswer,
        ("dry-run",),
        method="POST",
        body=ActionRequest,
    ),
    Operation("/session", "Log in with a token, or with the code of a link", LoggedIn, method="POST", body=LogIn),
    Operation("/session", "Log out", None, method="DELETE"),
)


def document(version: str) -> dict[str, Any]:
    """Return the OpenAPI document; `version` is that of the program."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(f"{API}{operation.path}", {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "kardinal page", "version": version},
        "paths": paths,
        "components": {"schemas": _schemas()},
    }


def _operation(operation: Operation) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _IN_PATH.findall(operation.path)
    ]
    for name in operation.query:
        kind = {"type": "integer", "minimum": 1, "maximum": 500} if name == "limit" else {"type": "string"}
        parameters.append({"name": name, "in": "query", "description": _QUERY[name], "schema": kind})
    status = "204" if operation.method == "DELETE" else "200"
    described: dict[str, Any] = {
        "summary": operation.summary,
        "responses": {status: _answer(operation), "default": _error()},
    }
    if operation.body is not None:
        content = {"application/json": {"schema": {"$ref": _reference(operation.body.__name__)}}}
        described["requestBody"] = {"required": True, "content": content}
    return {**described, "parameters": parameters} if parameters else described


def _answer(operation: Operation) -> dict[str, Any]:
    if operation.method == "DELETE":
        return {"description": operation.summary}
    if operation.answer is None:
        return {"description": "Text", "content": {"application/yaml": {"schema": {"type": "string"}}}}
    schema = {"$ref": _reference(operation.answer.__name__)}
    if not operation.streams:
        return {"description": operation.summary, "content": {"application/json": {"schema": schema}}}
    # The schema is that of the document which snapshot and patches make together.
    return {"description": "Server-sent events", "content": {"text/event-stream": {"schema": schema}}}


def _error() -> dict[str, Any]:
    schema = {"$ref": _reference(PageError.__name__)}
    return {"description": "An error", "content": {"application/json": {"schema": schema}}}


def _reference(name: str) -> str:
    return f"#/components/schemas/{name}"


def _schemas() -> dict[str, Any]:
    """Return the schemas of all models: no field is null, and a constant is always there."""
    named = [getattr(model, name) for name in model.__all__]
    models = [each for each in named if isinstance(each, type) and issubclass(each, View) and each is not View]
    _, found = models_json_schema(
        [(each, "validation") for each in models], ref_template=_reference("{model}"), by_alias=True
    )
    schemas: dict[str, Any] = found["$defs"]
    for schema in schemas.values():
        properties = {name: _without_null(each) for name, each in schema.get("properties", {}).items()}
        given = [*schema.get("required", ()), *_constants(properties)]
        schema["properties"] = properties
        schema["required"] = [name for name in properties if name in given]
    return schemas


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in schema.items() if key not in {"default", "title"}}
    choices = [each for each in kept.get("anyOf", ()) if each != {"type": "null"}]
    if len(choices) == 1:
        del kept["anyOf"]
        return {**kept, **choices[0]}
    return {**kept, "anyOf": choices} if choices else kept


def _constants(properties: dict[str, Any]) -> Iterator[str]:
    return (name for name, schema in properties.items() if "const" in schema)
