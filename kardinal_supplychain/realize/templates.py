"""Find what is wrong with a template, beyond what its schema says.

`template_problems` are of a template from which nothing can be made; `template_warnings` of one whose objects hardly do
what its author meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kardinal.objects.suggestions import nearest
from kardinal_supplychain.api.fields import TEMPLATE_LIMIT
from kardinal_supplychain.api.templates import DeploymentTemplateSpec, TemplateSpec
from kardinal_supplychain.jsonpath import PathError, parse_path
from kardinal_supplychain.problems import SupplyChainProblem
from kardinal_supplychain.realize.bundle import bundle_problems, is_bundle
from kardinal_supplychain.realize.context import ROOTS
from kardinal_supplychain.realize.interpolate import InterpolationError, Tag, encoded_json, tags_within
from kardinal_supplychain.realize.outputs import output_paths
from kardinal_supplychain.realize.runs import is_job

__all__ = [
    "TemplateFinder",
    "body_problems",
    "tagged_path_problems",
    "template_problems",
    "template_warnings",
    "whole_inputs",
]

TemplateFinder = Callable[[str, str], TemplateSpec | None]
"""Return the template of a kind and a name; None if there is none."""

_TAG = "$("

_VALUES = {"images": "image", "configs": "config"}
"""The field of an input of each type that has its value."""


def template_problems(spec: TemplateSpec) -> Iterator[SupplyChainProblem]:
    """Yield why nothing can be made from a template."""
    yield from tagged_path_problems(spec)
    for name, path in output_paths(spec).items():
        try:
            if _TAG not in path:
                parse_path(path)
        except PathError as error:
            yield SupplyChainProblem(f"spec.{name}Path", str(error))
    if spec.template is not None:
        yield from body_problems(spec.template, roots=ROOTS)


def tagged_path_problems(spec: TemplateSpec) -> Iterator[SupplyChainProblem]:
    """Yield the paths of outputs that are written as tags, which read nothing of a stamped object."""
    for name, path in output_paths(spec).items():
        if _TAG in path:
            remedy = "write the path alone, such as status.artifact.url"
            yield SupplyChainProblem(f"spec.{name}Path", "a path of an output has no tags", remedy)


def body_problems(template: dict[str, object], *, roots: tuple[str, ...]) -> Iterator[SupplyChainProblem]:
    """Yield what is wrong with the object of a template, whose tags read `roots`."""
    try:
        size = len(encoded_json(template))
        tags = list(tags_within(template))
    except (InterpolationError, ValueError) as error:
        yield SupplyChainProblem("spec.template", str(error))
        return
    if size > TEMPLATE_LIMIT:
        yield SupplyChainProblem("spec.template", f"it has {size:,} bytes, and at most {TEMPLATE_LIMIT:,} are allowed")
    if is_bundle(template):
        for problem in bundle_problems(template):
            yield SupplyChainProblem(f"spec.template.{problem.field}", problem.message, problem.remedy)
    metadata = template.get("metadata")
    if isinstance(metadata, dict) and "namespace" in metadata:
        yield SupplyChainProblem(
            "spec.template.metadata.namespace",
            "an object is made in the namespace of its owner",
            "leave it out",
        )
    for place, tag, _ in tags:
        field = f"spec.template.{place}"
        try:
            fields = parse_path(tag.path).fields
        except PathError as error:
            yield SupplyChainProblem(field, f"$({tag.path})$: {error}")
            continue
        if fields and fields[0] not in roots:
            near = nearest(fields[0], roots)
            remedy = f"did you mean {near}?" if near else f"a tag reads {', '.join(roots)}"
            yield SupplyChainProblem(field, f"$({tag.path})$ reads {fields[0]}, which is not there", remedy)


def template_warnings(spec: TemplateSpec) -> Iterator[SupplyChainProblem]:
    """Yield what is accepted, and does not do what it looks like."""
    observed = isinstance(spec, DeploymentTemplateSpec) and (spec.observed_matches or spec.observed_completion)
    if isinstance(spec, DeploymentTemplateSpec) and not observed:
        yield SupplyChainProblem(
            "spec",
            "it counts as deployed as soon as it is stamped",
            "write observedMatches or observedCompletion",
        )
    if spec.template is None:
        return
    for field in ("apiVersion", "kind"):
        if field not in spec.template:
            yield SupplyChainProblem("spec.template", f"no object can be made of it without {field}")
    if is_bundle(spec.template) and spec.health_rule is None:
        yield SupplyChainProblem(
            "spec",
            "the owner is ready as soon as the Bundle is created",
            "write healthRule: {singleConditionType: Ready}, which is True once every environment is Verified",
        )
    metadata = spec.template.get("metadata")
    is_updated = spec.lifecycle == "mutable" and not is_bundle(spec.template)
    if is_updated and isinstance(metadata, dict) and "name" not in metadata:
        yield SupplyChainProblem(
            "spec.template.metadata",
            "an object without a name is made anew for each change",
            "write metadata.name, or set lifecycle: immutable",
        )
    if is_job(spec.template):
        remedy = "set lifecycle: immutable, and a healthRule that matches the conditions Complete and Failed"
        if spec.lifecycle == "mutable":
            yield SupplyChainProblem("spec", "a Job cannot be changed once it exists", remedy)
        if spec.lifecycle == "tekton" and spec.health_rule is None:
            yield SupplyChainProblem("spec", "a Job has no condition Succeeded, which is waited for", remedy)
    for place, tag, value in whole_inputs(spec.template):
        yield SupplyChainProblem(f"spec.template.{place}", f"{tag} is an object", f"write {value}")


def whole_inputs(template: object) -> Iterator[tuple[str, str, str]]:
    """Yield each tag that reads an image or a config as an object: its place, the tag, and that of the value in it.

    Pages of Cartographer write `$(images.x)$` for the image, which is `$(images.x.image)$`.
    """
    for place, tag, _ in _tags(template):
        try:
            fields = parse_path(tag.path).fields
        except PathError:
            continue
        if len(fields) == 2 and fields[0] in _VALUES:
            yield place, f"$({tag.path})$", f"$({tag.path}.{_VALUES[fields[0]]})$"


def _tags(template: object) -> Iterator[tuple[str, Tag, bool]]:
    try:
        yield from tags_within(template)
    except InterpolationError:
        return
