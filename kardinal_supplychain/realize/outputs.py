"""Read the outputs of a stamped object: what its template says is read from it, and nothing of another object.

A ClusterDeploymentTemplate reads none: it passes its input on once the object says that it was deployed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kardinal.objects import JsonObject
from kardinal.objects.errors import KardinalError
from kardinal_supplychain.api.templates import (
    ConfigTemplateSpec,
    DeploymentTemplateSpec,
    ImageTemplateSpec,
    ObservedCompletion,
    ObservedMatch,
    SourceTemplateSpec,
    TemplateSpec,
)
from kardinal_supplychain.blueprints.select import field_text
from kardinal_supplychain.jsonpath import PathError, parse_path
from kardinal_supplychain.realize.context import SourceValue
from kardinal_supplychain.realize.interpolate import DEPTH_LIMIT, is_deeper

__all__ = ["ConditionNotMet", "DeploymentFailed", "OutputMissing", "Outputs", "output_paths", "read_outputs"]

Outputs = Mapping[str, Any]
"""The values of outputs by name: `url`, `revision`, `image`, `config`."""


class OutputMissing(KardinalError):
    """An output that the stamped object does not have; `path` says where it would be."""

    def __init__(self, path: str, error: PathError) -> None:
        super().__init__(error.message)
        self.path = path


class ConditionNotMet(KardinalError):
    """An object that does not say yet that it was deployed."""


class DeploymentFailed(KardinalError):
    """An object that says that its deployment failed."""


def output_paths(spec: TemplateSpec) -> dict[str, str]:
    """Return the paths of the outputs of a template by their names; that of `url` is the field `urlPath`."""
    match spec:
        case SourceTemplateSpec():
            return {"url": spec.url_path, "revision": spec.revision_path}
        case ImageTemplateSpec():
            return {"image": spec.image_path}
        case ConfigTemplateSpec():
            return {"config": spec.config_path}
        case DeploymentTemplateSpec():
            paths = {"url": spec.url_path, "revision": spec.revision_path}
            return {name: path for name, path in paths.items() if path is not None}
    return {}


def read_outputs(spec: TemplateSpec, stamped: JsonObject, *, deployment: SourceValue | None = None) -> Outputs:
    """Return the outputs of a stamped object. Raises `OutputMissing`, and of a deployment the other two errors.

    `deployment` is the input of a ClusterDeploymentTemplate.
    """
    outputs: dict[str, Any] = {}
    if isinstance(spec, DeploymentTemplateSpec):
        _check_deployed(spec, stamped)
        if deployment is not None:
            outputs = {"url": deployment.url, "revision": deployment.revision}
    for name, path in output_paths(spec).items():
        try:
            outputs[name] = _bounded(parse_path(path).one(stamped))
        except PathError as error:
            raise OutputMissing(path, error) from None
    return outputs


def _bounded(value: Any) -> Any:
    if is_deeper(value, DEPTH_LIMIT):
        raise PathError(f"the value is nested deeper than {DEPTH_LIMIT} levels")
    return value


def _check_deployed(spec: DeploymentTemplateSpec, stamped: JsonObject) -> None:
    for match in spec.observed_matches or ():
        _check_match(match, stamped)
    if spec.observed_completion is not None:
        _check_completion(spec.observed_completion, stamped)


def _check_match(match: ObservedMatch, stamped: JsonObject) -> None:
    values = []
    for side, path in (("input", match.input), ("output", match.output)):
        try:
            values.append(parse_path(path).one(stamped))
        except PathError as error:
            raise ConditionNotMet(f"could not find value on {side} [{path}]: {error}") from None
    if values[0] != values[1]:
        raise ConditionNotMet(
            f"input [{match.input}] and output [{match.output}] do not match: "
            f"{field_text(values[0])} != {field_text(values[1])}"
        )


def _check_completion(completion: ObservedCompletion, stamped: JsonObject) -> None:
    observed = (stamped.get("status") or {}).get("observedGeneration")
    if observed != stamped["metadata"].get("generation"):
        raise ConditionNotMet("status.observedGeneration does not equal metadata.generation")
    if completion.failed is not None:
        try:
            value = field_text(parse_path(completion.failed.key).one(stamped))
        except PathError:
            value = None
        if value == completion.failed.value:
            raise DeploymentFailed(f"deployment failure condition [{completion.failed.key}] was: {value}")
    key = completion.succeeded.key
    try:
        value = field_text(parse_path(key).one(stamped))
    except PathError as error:
        raise ConditionNotMet(f"failed to evaluate succeededCondition.Key [{key}]: {error}") from None
    if value != completion.succeeded.value:
        raise ConditionNotMet(
            f"deployment success condition [{key}] was: {value}, expected: {completion.succeeded.value}"
        )
