"""The body of `POST /api/v1/bundles`: from bytes to a Bundle, or to every mistake in it at once (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Annotated, Any, get_args

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from kardinal.api import Pipeline
from kardinal.api.base import DnsLabel, Model, Name
from kardinal.api.bundle import Artifacts, BundleType, Intent, Provenance
from kardinal.api.image import image_problems
from kardinal.api.new_bundle import NewBundle
from kardinal.objects.suggestions import nearest
from kardinal_controller.http.problem import FieldError, ProblemError

__all__ = ["BundleRequest", "check_against", "parse_request"]

LABEL_VALUE_PATTERN = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"


class BundleRequest(BaseModel):
    """The body that CI posts; the fields mean what they mean on a Bundle."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore")

    pipeline: Name
    namespace: DnsLabel = "default"
    type: BundleType = "image"
    artifacts: Artifacts
    provenance: Provenance | None = None
    intent: Intent = Field(default_factory=Intent)
    labels: Annotated[
        dict[str, Annotated[str, Field(max_length=63, pattern=LABEL_VALUE_PATTERN)]], Field(max_length=32)
    ] = Field(default_factory=dict)

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
        )


def parse_request(body: bytes) -> BundleRequest:
    """Read the body of a request.

    Raises `ProblemError` 422 with the path of every wrong field, unknown ones with the nearest known name.
    """
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ProblemError(
            HTTPStatus.UNPROCESSABLE_ENTITY, f"the body is not JSON (line {error.lineno}, column {error.colno})"
        ) from None
    if not isinstance(document, dict):
        raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "the body must be a JSON object")
    errors = list(_unknown_fields(document, BundleRequest, ""))
    try:
        request = BundleRequest.model_validate(document)
    except ValidationError as error:
        errors += [FieldError(_path(item["loc"]), item["msg"]) for item in error.errors(include_input=False)]
    if errors:
        raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "the body is not a valid Bundle request", errors)
    return request


def check_against(request: BundleRequest, pipeline: Pipeline) -> None:
    """Raise `ProblemError` 422 where the request names what its Pipeline does not have, or no usable image."""
    environments = [environment.name for environment in pipeline.spec.environments]
    errors: list[FieldError] = []
    if request.intent.target:
        errors += _unknown_environment("intent.target", request.intent.target, environments)
    for index, name in enumerate(request.intent.skip):
        errors += _unknown_environment(f"intent.skip[{index}]", name, environments)
    if request.type == "image" and not request.artifacts.images:
        errors.append(FieldError("artifacts.images", "name at least one image"))
    errors += [FieldError(field, message) for field, message in image_problems(request.artifacts)]
    if errors:
        raise ProblemError(
            HTTPStatus.UNPROCESSABLE_ENTITY, f"the request does not fit Pipeline {pipeline.metadata.name}", errors
        )


def _unknown_environment(path: str, name: str, known: Sequence[str]) -> Iterable[FieldError]:
    if name not in known:
        yield FieldError(path, f"unknown environment {name!r}{_suggestion(name, known)}; known: {', '.join(known)}")


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
    """Return the models an annotation holds, directly or in a union or tuple."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def _suggestion(name: str, known: Iterable[str]) -> str:
    near = nearest(name, known)
    return f" (did you mean {near!r}?)" if near else ""


def _path(location: tuple[int | str, ...]) -> str:
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    return path.removeprefix(".")
