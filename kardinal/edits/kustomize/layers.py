"""Read kustomizations from the bases up, and apply their fields in the same order as kustomize.

The order in one directory: resources, components, patches, names, JSON patches, `images`; a base is completely
processed before it is included. Fields whose effect is not computed here are noted instead of guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kardinal.edits.kustomize import references
from kardinal.edits.kustomize.image_fields import FieldSpec, ImageEntry, ImageField, image_fields
from kardinal.edits.kustomize.kustomization import FILE_NAMES
from kardinal.edits.kustomize.manifests import (
    Mapping,
    TooLarge,
    Unread,
    UnreadableManifest,
    Value,
    Volume,
    documents,
    mapping,
    sequence,
    text_of,
)
from kardinal.edits.kustomize.patches import (
    PatchedResource,
    PatchTarget,
    apply_json_patch,
    is_json_patch,
    merge,
    touches_images,
)
from kardinal.tree.edit import EditError, Tree

__all__ = ["Accumulated", "Layers"]

_MAX_DEPTH = 32
_HARMLESS = frozenset(
    (
        "AnnotationsTransformer",
        "LabelTransformer",
        "NamespaceTransformer",
        "PrefixTransformer",
        "PrefixSuffixTransformer",
        "ReplicaCountTransformer",
        "SuffixTransformer",
    )
)
"""Built-in transformers of kustomize that change no image."""
_IMAGELESS = frozenset(("ConfigMapGenerator", "SecretGenerator"))
_POD_SEGMENTS = frozenset(("", "*", "spec", "template", "jobTemplate", "containers", "initContainers"))


@dataclass(slots=True)
class Accumulated:
    """The resources of a directory so far, and the paths to images besides those in containers."""

    resources: list[PatchedResource] = field(default_factory=list)
    specs: list[FieldSpec] = field(default_factory=list)


@dataclass(slots=True)
class Layers:
    """The reader of the directories of a kustomization, with its notes.

    `missing`: fields that may add resources. `uncertain`: fields that may change images in a way that is not computed
    here. `remote`, `helm`: references that a renderer would fetch, and directories whose charts it would inflate.
    `roots`: the directories that were read. `unread`: directories that take part but could not be read. `closed`:
    reasons why a file that takes part was not completely read.
    """

    tree: Tree
    volume: Volume = field(default_factory=Volume)
    missing: list[str] = field(default_factory=list)
    uncertain: list[str] = field(default_factory=list)
    remote: list[str] = field(default_factory=list)
    helm: list[str] = field(default_factory=list)
    roots: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    _reads_plugins: bool = False
    """Whether the resources of the current directory are configurations of plugins, which kustomize executes."""

    def kustomization(
        self,
        directory: str,
        *,
        stack: tuple[str, ...] = (),
        into: Accumulated | None = None,
        before_images: Callable[[Accumulated], None] | None = None,
    ) -> Accumulated:
        """Return the resources that a directory renders. A component changes the resources in `into`.

        `before_images` is called with the resources before the directory's own `images` apply. Raises
        `UnreadableManifest`.
        """
        try:
            if directory in stack or len(stack) >= _MAX_DEPTH:
                raise Unread(f"{directory or '.'} takes itself in")
            content = self._read_kustomization(directory)
        except (UnreadableManifest, EditError):
            self.unread.append(directory)
            raise
        if directory not in self.roots:
            self.roots.append(directory)
        stack = (*stack, directory)
        self.remote += references.remote_references(content)
        found = into if into is not None else Accumulated()
        for name in ("resources", "bases"):
            for entry in sequence(content.get(name)):
                self._noting(self.missing, self._resource, directory, text_of(entry), found, stack)
        for entry in sequence(content.get("configurations")):
            self._noting(self.uncertain, self._configuration, directory, text_of(entry), found)
        self._generators(directory, content, stack)
        for entry in sequence(content.get("components")):
            self._noting(self.missing, self._component, directory, text_of(entry), found, stack)
        self._transform(directory, content, found, stack, before_images)
        return found

    def _noting(self, notes: list[str], function: Callable[..., None], *arguments: object) -> None:
        """Call a function; if it raises `UnreadableManifest`, note the reason in `notes`."""
        try:
            function(*arguments)
        except TooLarge:
            raise
        except (Unread, EditError) as error:
            notes.append(str(error))
            self.closed.append(str(error))
        except UnreadableManifest as error:
            notes.append(str(error))

    def _read_kustomization(self, directory: str) -> Mapping:
        names = [name for name in FILE_NAMES if self.tree.size(_join(directory, name)) is not None]
        if not names:
            raise Unread(f"{directory or '.'} holds no kustomization")
        file = _join(directory, names[0])
        found = [body for body in self._file(file, definitions=True) if body is not None]
        if len(found) > 1 or (found and not isinstance(found[0], dict)):
            raise Unread(f"{file}: not one mapping in one document")
        content = mapping(found[0]) if found else {}
        if wrong := references.misspelt_field(content):
            raise Unread(f"{file}: the field {wrong[:60]!r} is spelt otherwise")
        return content

    def _resource(self, directory: str, reference: str, found: Accumulated, stack: tuple[str, ...]) -> None:
        if references.is_remote(reference):
            raise UnreadableManifest(f"{reference[:120]} is not in the repository")
        path = references.local_path(directory, reference)
        if self.tree.is_dir(path):
            below = self.kustomization(path, stack=stack)
            found.resources += below.resources
            found.specs += below.specs
            return
        for body in self._file(references.inside(directory, reference), definitions=self._reads_plugins):
            found.resources += _expanded(mapping(body), path)

    def _component(self, directory: str, reference: str, found: Accumulated, stack: tuple[str, ...]) -> None:
        if references.is_remote(reference):
            raise UnreadableManifest(f"{reference[:120]} is not in the repository")
        self.kustomization(references.local_path(directory, reference), stack=stack, into=found)

    def _file(self, path: str, *, definitions: bool = False) -> Iterator[Value]:
        content = self.tree.read(path)
        if content is None:
            raise Unread(f"there is no file {path}")
        try:
            yield from documents(content, self.volume, definitions=definitions)
        except TooLarge:
            raise
        except UnreadableManifest as error:
            raise type(error)(f"{path}: {error}") from error

    def _configuration(self, directory: str, reference: str, found: Accumulated) -> None:
        for body in self._file(_local_file(directory, reference)):
            found.specs += (_field_spec(spec) for spec in sequence(mapping(body).get("images")))

    def _generators(self, directory: str, content: Mapping, stack: tuple[str, ...]) -> None:
        if references.uses_helm(content):
            self.helm.append(directory)
            self.missing.append(f"{directory or '.'} inflates a Helm chart")
        for plugin in self._plugins(directory, content, "generators", self.missing, stack):
            if not (plugin.get("apiVersion") == "builtin" and plugin.get("kind") in _IMAGELESS):
                self.missing.append(f"{directory or '.'} runs the generator {_kind(plugin)}")

    def _transform(
        self,
        directory: str,
        content: Mapping,
        found: Accumulated,
        stack: tuple[str, ...],
        before_images: Callable[[Accumulated], None] | None,
    ) -> None:
        for field_name in ("patchesStrategicMerge", "patches"):
            for entry in sequence(content.get(field_name)):
                self._noting(self.uncertain, self._patch, directory, entry, found)
        prefix = text_of(content.get("namePrefix"))
        suffix = text_of(content.get("nameSuffix"))
        if prefix or suffix:
            for resource in found.resources:
                resource.rename(prefix, suffix)
        for entry in sequence(content.get("patchesJson6902")):
            self._noting(self.uncertain, self._patch, directory, entry, found)
        if before_images is not None:
            before_images(found)
        self._images([*sequence(content.get("images")), *sequence(content.get("imageTags"))], found)
        for entry in sequence(content.get("replacements")):
            self._noting(self.uncertain, self._replacement, directory, entry)
        for plugin in self._plugins(directory, content, "transformers", self.uncertain, stack):
            self._transformer(directory, plugin, found)
        for _ in self._plugins(directory, content, "validators", self.uncertain, stack):
            pass

    def _images(self, entries: list[Value], found: Accumulated) -> None:
        if not entries:
            return
        fields = [*fields_of(found)]
        for entry in entries:
            self.volume.take(values=len(fields))
            self._noting(self.uncertain, _set_images, fields, ImageEntry.read(entry))

    def _transformer(self, directory: str, plugin: Mapping, found: Accumulated) -> None:
        kind = text_of(plugin.get("kind"))
        if plugin.get("apiVersion") == "builtin" and kind == "ImageTagTransformer":
            specs = [_field_spec(spec) for spec in sequence(plugin.get("fieldSpecs"))]
            self._images([plugin.get("imageTag")], Accumulated(found.resources, specs))
        elif not (plugin.get("apiVersion") == "builtin" and kind in _HARMLESS):
            self.uncertain.append(f"{directory or '.'} runs the transformer {_kind(plugin)}")

    def _plugins(
        self, directory: str, content: Mapping, name: str, notes: list[str], stack: tuple[str, ...]
    ) -> Iterator[Mapping]:
        """Yield the configurations of plugins, which are inline, in files, or rendered by a directory."""
        for entry in sequence(content.get(name)):
            found: list[Mapping] = []
            self._noting(notes, self._plugin, directory, text_of(entry), found, stack)
            for plugin in found:
                self.remote += references.remote_references(plugin)
                yield plugin

    def _plugin(self, directory: str, text: str, found: list[Mapping], stack: tuple[str, ...]) -> None:
        if "\n" in text:
            found += [mapping(body) for body in documents(text.encode(), self.volume, definitions=True)]
            return
        if references.is_remote(text):
            self.remote.append(text)
            raise UnreadableManifest(f"{text[:120]} is not in the repository")
        path = references.local_path(directory, text)
        if not self.tree.is_dir(path):
            found += [mapping(body) for body in self._file(references.inside(directory, text), definitions=True)]
            return
        before = self._reads_plugins
        self._reads_plugins = True
        try:
            found += [resource.body for resource in self.kustomization(path, stack=stack).resources]
        finally:
            self._reads_plugins = before

    def _patch(self, directory: str, entry: Value, found: Accumulated) -> None:
        item = mapping(entry)
        text = text_of(entry) or text_of(item.get("patch"))
        if isinstance(entry, str) and "\n" not in entry and ":" not in entry:
            bodies = [*self._file(_local_file(directory, entry))]
        elif text:
            bodies = [*documents(text.encode(), self.volume)]
        else:
            bodies = [*self._file(_local_file(directory, text_of(item.get("path"))))]
        selector = mapping(item.get("target"))
        for body in bodies:
            self._apply(body, self._selected(body, selector, found), found)

    def _selected(self, patch: Value, selector: Mapping, found: Accumulated) -> list[PatchedResource]:
        """Return the resources that a patch applies to.

        If they cannot be determined, raise `UnreadableManifest` if the patch may change images, and otherwise return
        none.
        """
        self.volume.take(values=len(found.resources))
        try:
            target = PatchTarget.selector(selector) if selector else PatchTarget.of(mapping(patch))
            return [resource for resource in found.resources if target.selects(resource)]
        except UnreadableManifest:
            if touches_images(patch):
                raise
            return []

    def _apply(self, patch: Value, chosen: list[PatchedResource], found: Accumulated) -> None:
        for resource in chosen:
            if is_json_patch(patch):
                apply_json_patch(resource.body, sequence(patch), self.volume)
            elif isinstance(patch, dict) and not merge(resource, patch, self.volume):
                found.resources = [one for one in found.resources if one is not resource]

    def _replacement(self, directory: str, entry: Value) -> None:
        item = mapping(entry)
        bodies: list[Value] = [item]
        if path := text_of(item.get("path")):
            bodies = [*self._file(_local_file(directory, path))]
        for body in bodies:
            for one in sequence(body) if isinstance(body, list) else [body]:
                for target in sequence(mapping(one).get("targets")):
                    if any(_names_image(text_of(path)) for path in sequence(mapping(target).get("fieldPaths"))):
                        raise UnreadableManifest(f"{directory or '.'} sets images by replacements")


def fields_of(found: Accumulated) -> Iterator[ImageField]:
    """Yield the image fields of all resources, described by their resource and file."""
    for resource in found.resources:
        for one in image_fields(resource.body, found.specs):
            one.owner = f"{resource.title}, {one.owner} ({resource.file})"
            yield one


def _local_file(directory: str, reference: str) -> str:
    """Return the path of a file in a kustomization; raises `UnreadableManifest` if kustomize would download it."""
    if references.is_remote(reference):
        raise UnreadableManifest(f"{reference[:120]} is not in the repository")
    return references.inside(directory, reference)


def _field_spec(value: Value) -> FieldSpec:
    item = mapping(value)
    return FieldSpec(text_of(item.get("path")), text_of(item.get("kind")))


def _set_images(fields: list[ImageField], entry: ImageEntry) -> None:
    for one in fields:
        if text := one.text:
            one.holder[one.key] = entry.apply(text)


def _expanded(body: Mapping, path: str) -> list[PatchedResource]:
    """Return the resource, or the items of a List."""
    if text_of(body.get("kind")).endswith("List") and isinstance(body.get("items"), list):
        return [PatchedResource(mapping(item), path) for item in sequence(body.get("items"))]
    return [PatchedResource(body, path)]


def _names_image(path: str) -> bool:
    """Return whether a field path of a replacement may lead to an image, or to a parent of one."""
    segments = [segment.partition("[")[0] for segment in path.replace("[", ".[").split(".")]
    return "image" in segments or all(segment in _POD_SEGMENTS or segment.isdigit() for segment in segments)


def _kind(plugin: Mapping) -> str:
    return (text_of(plugin.get("kind")) or "without a kind")[:80]


def _join(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory else name
