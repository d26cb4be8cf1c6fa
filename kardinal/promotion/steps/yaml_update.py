"""`yaml-update`: set single values in a YAML or JSON file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from kardinal.edits.helm.values_images import images_in
from kardinal.edits.images import ImageChange
from kardinal.edits.yaml.document_path import PathSyntaxError, parse_path
from kardinal.edits.yaml.document_text import DocumentFile, FieldUpdate
from kardinal.edits.yaml.document_walk import DocumentError, find, text_of
from kardinal.edits.yaml.yaml_scalar import Scalar
from kardinal.promotion.steps.declaration import EditContext, FileEdit, Role, StepConfig, StepDeclaration
from kardinal.promotion.steps.environment_files import EnvironmentFiles, EnvironmentPath, named
from kardinal.tree.edit import Changes

__all__ = ["YAML_UPDATE", "ValueText", "YamlUpdateConfig", "is_json", "value_image_changes"]

_NAME = parse_path("metadata.name")


def _is_path(text: str) -> str:
    try:
        parse_path(text)
    except PathSyntaxError as error:
        raise PydanticCustomError("path", "{message}", {"message": error.message}) from error
    return text


def _is_scalar(value: Any) -> Any:
    if value is not None and not isinstance(value, (str, int, float)):
        raise PydanticCustomError("scalar", "must be text, a number, true, false or null")
    return value


ValueText = Annotated[str, Field(min_length=1, max_length=512), AfterValidator(_is_path)]
"""A path to a value, such as `spec.template.spec.containers[name=app].image`."""


class DocumentSelector(StepConfig):
    """The document of a file with several documents; all given fields must match, and only one document."""

    kind: Annotated[str | None, Field(max_length=63, description="The `kind` of the document.")] = None
    name: Annotated[str | None, Field(max_length=253, description="Its `metadata.name`.")] = None
    index: Annotated[
        int | None, Field(ge=0, description="Its place among the documents that hold something, from 0.")
    ] = None


class ValueUpdate(StepConfig):
    """One value to set."""

    path: Annotated[ValueText, Field(description="The path of the value.")]
    value: Annotated[
        Scalar, BeforeValidator(_is_scalar), Field(description="The new value: text, a number, a boolean or null.")
    ]
    create: Annotated[
        bool, Field(description="Whether the last key of the path is added where it is missing, instead of an error.")
    ] = False


class YamlUpdateConfig(StepConfig):
    """The file and its new values."""

    file: Annotated[
        EnvironmentPath, Field(description="The file; one that ends in `.json` is JSON, every other one YAML.")
    ]
    updates: Annotated[
        tuple[ValueUpdate, ...], Field(min_length=1, max_length=64, description="The values to set, all or none.")
    ]
    document: Annotated[
        DocumentSelector | None, Field(description="Which document of the file; needed if it has several.")
    ] = None


def is_json(path: str) -> bool:
    """Return whether a file is JSON, by its name."""
    return path.lower().endswith(".json")


def value_image_changes(before: bytes | None, after: bytes | None) -> Sequence[ImageChange]:
    """Return the images among the values of a file that differ, by their paths."""
    old, new = ({str(found.path): found.reference for found in _images(content)} for content in (before, after))
    return [ImageChange(path, old.get(path), image) for path, image in new.items() if old.get(path) != image]


def _images(content: bytes | None) -> list[Any]:
    try:
        return [found for root in DocumentFile.parse(content or b"").roots for found in images_in(root)]
    except DocumentError:
        return []


def _plan(context: EditContext, config: YamlUpdateConfig) -> Changes:
    files = EnvironmentFiles.of(context)
    path = files.full(config.file)
    content = files.read(config.file)
    with named(path):
        file = DocumentFile.parse(content, json=is_json(path))
        document = _selected(file, config.document or DocumentSelector())
        updates = [
            FieldUpdate(path=parse_path(update.path), value=update.value, create=update.create, document=document)
            for update in config.updates
        ]
        return {path: file.edited(updates)}


def _selected(file: DocumentFile, selector: DocumentSelector) -> int:
    """Return the number of the only document that matches."""
    filled = [number for number, root in enumerate(file.roots) if not _is_empty(root)]
    fitting = [number for place, number in enumerate(filled) if _fits(file.roots[number], place, selector)]
    if len(fitting) == 1:
        return fitting[0]
    if not filled:
        raise DocumentError("is empty")
    held = ", ".join(_named(file.roots[number]) for number in filled[:8])
    if not fitting:
        raise DocumentError(f"no document fits `document`; the file holds {held}")
    raise DocumentError(f"{len(fitting)} documents fit; say by `document` which one: the file holds {held}")


def _fits(root: yaml.Node, place: int, selector: DocumentSelector) -> bool:
    kind = text_of(find(root, parse_path("kind")))
    name = text_of(find(root, _NAME))
    wanted = ((selector.kind, kind), (selector.name, name), (selector.index, place))
    return all(asked is None or asked == there for asked, there in wanted)


def _is_empty(root: yaml.Node) -> bool:
    return isinstance(root, yaml.ScalarNode) and text_of(root) is None


def _named(root: yaml.Node) -> str:
    kind = text_of(find(root, parse_path("kind")))
    name = text_of(find(root, _NAME))
    return " ".join(part for part in (kind or "a document without a kind", name) if part)


YAML_UPDATE = StepDeclaration(
    name="yaml-update",
    about="Sets single values in a YAML or JSON file; nothing else in the file changes.",
    role=Role.EDIT,
    config=YamlUpdateConfig,
    edit=FileEdit(plan=_plan, image_changes=value_image_changes),
)
