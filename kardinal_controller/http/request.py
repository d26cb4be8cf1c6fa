"""Parse the document of a request to a Bundle, or to its errors, as many as fit into one answer (pure).

An example of such a document:

    {"pipeline": "web", "artifacts": {"images": [{"reference": "ghcr.io/acme/web:1.2.3"}]}}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from itertools import islice
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from kardinal.models.base import DnsLabel, Model, Name
from kardinal.objects.suggestions import nearest
from kardinal.promotion.api import Pipeline
from kardinal.promotion.api.artifacts import artifact_problems
from kardinal.promotion.api.bundle import Artifacts, BundleType, Intent, Provenance
from kardinal.promotion.api.names import ANNOTATION_PIN, LABEL_PIPELINE, is_reserved_for_ci
from kardinal.promotion.api.new_bundle import NewBundle
from kardinal_controller.http.problem import ERRORS_SHOWN, FieldError, ProblemError

__all__ = ["BundleRequest", "check_against", "parse_request"]

SUGGESTIONS = 8
"""The most unknown environments for which the nearest known name is searched."""
SUGGESTED_LENGTH = 64
"""The maximum length of a name for which the nearest known name is searched, in characters."""
ENTRIES: Mapping[str, int] = {"artifacts.images": 64, "intent.skip": 64, "intent.requests": 0, "labels": 32}
"""Lists and maps of a body, with the maximum number of their entries: for example 64 images."""
LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
LABEL_VALUE_PATTERN = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"


class BundleRequest(BaseModel):
    """The body that CI posts; its fields have the same meaning as in a Bundle."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore")

    pipeline: Name
    namespace: DnsLabel
    type: BundleType = "image"
    artifacts: Artifacts
    provenance: Provenance | None = None
    intent: Intent = Field(default_factory=Intent)
    labels: Annotated[
        dict[str, Annotated[str, Field(max_length=63, pattern=LABEL_VALUE_PATTERN)]],
        Field(max_length=ENTRIES["labels"]),
    ] = Field(default_factory=dict)
    pin: bool = False

    def bundle(self) -> NewBundle:
        """Return the Bundle to create."""
        return NewBundle(
            pipeline=self.pipeline,
            namespace=self.namespace,
            artifacts=self.artifacts,
            source="webhook",
            type=self.type,
            provenance=self.provenance,
            intent=self.intent,
            labels=self.labels,
            pin=self.pin,
        )


def parse_request(document: dict[str, Any], *, namespace: str) -> BundleRequest:
    """Parse the document of a request for `namespace`.

    Raises `ProblemError` 422 with the paths of the wrong fields, and the nearest known name for unknown ones. Lists are
    measured before they are parsed, and no more errors are collected than are shown.
    """
    errors = list(_too_long(document))
    if not errors:
        errors = list(islice(_field_errors(document, namespace), ERRORS_SHOWN))
        try:
            request = BundleRequest.model_validate({**document, "namespace": namespace})
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False, include_input=False)
            errors += [FieldError(_path(item["loc"]), item["msg"]) for item in found[:ERRORS_SHOWN]]
    if errors:
        raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "the body is not a valid Bundle request", errors)
    return request


def check_against(request: BundleRequest, pipeline: Pipeline) -> None:
    """Raise `ProblemError` 422 if the request names an environment that its Pipeline lacks, or has no usable image."""
    environments = [environment.name for environment in pipeline.spec.environments]
    named = [(f"intent.skip[{index}]", name) for index, name in enumerate(request.intent.skip)]
    if request.intent.target:
        named.insert(0, ("intent.target", request.intent.target))
    unknown = [(path, name) for path, name in named if name not in environments][:ERRORS_SHOWN]
    errors = [
        FieldError(path, _unknown_environment(name, environments, suggest=index < SUGGESTIONS))
        for index, (path, name) in enumerate(unknown)
    ]
    errors += [
        FieldError(problem.field, f"{problem.message}; {problem.remedy}" if problem.remedy else problem.message)
        for problem in artifact_problems(request.type, request.artifacts)
    ]
    if errors:
        raise ProblemError(
            HTTPStatus.UNPROCESSABLE_ENTITY, f"the request does not fit Pipeline {pipeline.metadata.name}", errors
        )


def _too_long(document: dict[str, Any]) -> Iterator[FieldError]:
    """Yield an error for each list or map with too many entries."""
    for path, limit in ENTRIES.items():
        value: Any = document
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, list | dict) and len(value) > limit:
            yield FieldError(path, f"has {len(value)} entries, and may have {limit}")


def _field_errors(document: dict[str, Any], namespace: str) -> Iterator[FieldError]:
    """Yield the errors about names of fields and labels in a document."""
    if document.get("namespace", namespace) != namespace:
        yield FieldError("namespace", "is not the namespace that the path of the request names")
    yield from _unknown_fields(document, BundleRequest, "")
    intent = document.get("intent")
    if isinstance(intent, dict) and intent.get("rollback") is not None:
        yield FieldError("intent.rollback", "is asked for by a person with `kardinal rollback`: leave it out")
    if isinstance(intent, dict) and intent.get("graph") is not None:
        yield FieldError("intent.graph", "is for a person who writes the Graph, and creates the Bundle: leave it out")
    labels = document.get("labels")
    for label, value in labels.items() if isinstance(labels, dict) else ():
        if label == ANNOTATION_PIN:
            yield FieldError(f"labels[{label}]", 'is an annotation of the Bundle: write "pin": true in the body')
        elif is_reserved_for_ci(label) and (label, value) != (LABEL_PIPELINE, document.get("pipeline")):
            yield FieldError(f"labels[{label}]", "labels of this prefix are kardinal's: leave it out")
        elif not LABEL_KEY.fullmatch(label):
            yield FieldError(f"labels[{label}]", "is not a label: write [prefix/]name")


def _unknown_environment(name: str, known: Sequence[str], *, suggest: bool) -> str:
    """Return the message about an unknown environment; searching the nearest name is costly, so only a few get one."""
    hint = f"{_suggestion(name, known)}; known: {', '.join(known)}" if suggest else ""
    return f"unknown environment {name!r}{hint}"


def _unknown_fields(document: dict[str, Any], model: type[BaseModel], prefix: str) -> Iterable[FieldError]:
    known = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    for key, value in document.items():
        path = f"{prefix}{key}"
        if key not in known:
            yield FieldError(path, f"unknown field{_suggestion(key, known)}")
            continue
        nested = next((kind for kind in _models(known[key])), None)
        if nested is None:
            continue
        if isinstance(value, dict):
            yield from _unknown_fields(value, nested, f"{path}.")
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, dict):
                    yield from _unknown_fields(item, nested, f"{path}[{index}].")


def _models(annotation: Any) -> Iterable[type[BaseModel]]:
    """Return the models that an annotation contains, directly or in a union or tuple."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def _suggestion(name: str, known: Iterable[str]) -> str:
    near = nearest(name, known) if len(name) <= SUGGESTED_LENGTH else None
    return f" (did you mean {near!r}?)" if near else ""


def _path(location: tuple[int | str, ...]) -> str:
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    return path.removeprefix(".")
