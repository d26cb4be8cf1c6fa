"""Set images in a kustomization as `kustomize edit set image` does, but keep the author's layout of every line.

An entry of `images` says: where a manifest uses `name`, use `newName` with `newTag` and `digest`. Promoting an image
means that every entry that yields its repository yields the promoted version: the entries whose `name` or `newName` is
the repository; else those whose `name` is the artifact's name, which then get the repository as `newName`; else a new
entry named by the repository. Tag and digest are written as in the reference. A part that the reference lacks is
removed, and so is a `tagSuffix`, because it would change the version. A `newName` is kept where `name` is the
repository, because it is a mirror of the repository.

kustomize compares texts: an entry `docker.io/x/y` has no effect on a manifest with `x/y`. So each spelling of the
repository in the manifests gets its own entry, unless there is one.

The guarantee: nothing outside `images` changes, and inside it only the fields above. The code that edits does not have
to be trusted for that: the new document is parsed again and compared with the old one.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import yaml

from kardinal.edits.images import ImageChange, PromotedImage
from kardinal.edits.yaml import yaml_text
from kardinal.edits.yaml.yaml_text import described
from kardinal.objects.errors import KardinalError
from kardinal.objects.image_reference import ImageReference, ImageReferenceError

__all__ = ["FILE_NAMES", "KustomizationError", "image_changes", "mirror_of", "set_images"]

FILE_NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""The file names that kustomize looks for in a directory, in this order."""

_ENTRY_KEYS = ("name", "newName", "newTag", "digest", "tagSuffix")


class KustomizationError(KardinalError):
    """A kustomization in which the image cannot be set; the message names the entry and the remedy."""

    def __init__(self, message: str, *, at: str = "") -> None:
        super().__init__(f"{at}: {message}" if at else message)


@dataclass(frozen=True, slots=True)
class _Entry:
    """One item of `images`, with its fields as text, whatever type YAML gives them."""

    name: str
    new_name: str | None
    new_tag: str | None
    digest: str | None
    tag_suffix: str | None

    @property
    def yields(self) -> ImageReference:
        return ImageReference(self.new_name or self.name, self.new_tag, self.digest)


def set_images(content: bytes, images: Sequence[PromotedImage], *, used: Iterable[str] = ()) -> bytes:
    """Return `content` with every image set; the same bytes if nothing changes. Raises `KustomizationError`.

    `used`: the images in the manifests, in their spelling there, before this kustomization's own `images` apply.
    """
    spelt = _spellings(images, used)
    _check_one_version_each(images)
    text = before = _decoded(content)
    _items(_root(before))
    try:
        for image in images:
            text = _set_image(text, image, spelt.get(image.reference.canonical, ()))
        if text == before:
            return content
        unharmed = _only_images_changed(before, text, images)
    except KustomizationError:
        unharmed = False
    if not unharmed:
        raise KustomizationError(
            "cannot be set without changing something else; write the values out instead of using anchors, aliases or "
            "merge keys",
            at="images",
        )
    return (codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b"") + text.encode()


def mirror_of(content: bytes, image: PromotedImage) -> str | None:
    """Return the mirror that runs in place of the image's repository; None unless there is exactly one."""
    entries = _entries(_decoded(content))
    chosen = {entries[index].yields.repository for index in _chosen(entries, image)}
    others = {name for name in chosen if ImageReference(name).canonical != image.reference.canonical}
    return others.pop() if others == chosen and len(others) == 1 else None


def image_changes(before: bytes | None, after: bytes | None) -> list[ImageChange]:
    """Return the entries that yield another image than before, in the order of the file."""
    if after is None:
        return []
    old = {entry.name: entry.yields for entry in _entries(_decoded(before))} if before is not None else {}
    new = [(entry.name, entry.yields) for entry in _entries(_decoded(after))]
    return [ImageChange(name, old.get(name), image) for name, image in new if old.get(name) != image]


def _check_one_version_each(images: Sequence[PromotedImage]) -> None:
    versions: dict[str, ImageReference] = {}
    for image in images:
        known = versions.setdefault(image.reference.canonical, image.reference)
        if (known.tag, known.digest) != (image.reference.tag, image.reference.digest):
            raise KustomizationError(
                f"the Bundle holds two versions of {known.repository}: {known.version} and "
                f"{image.reference.version}; promote one"
            )


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise KustomizationError(f"not UTF-8 text (byte {error.start}); save it as UTF-8") from error


# cached because setting one image asks several times for the nodes of the same text, and changes none of them
@lru_cache(maxsize=2)
def _root(text: str) -> yaml.MappingNode | None:
    try:
        root = yaml_text.compose(text)
    except yaml_text.YamlSyntaxError as error:
        raise KustomizationError(f"invalid YAML: {error}") from error
    if root is not None and not isinstance(root, yaml.MappingNode):
        raise KustomizationError(f"must be a mapping with fields such as resources and images, not {described(root)}")
    return root


def _items(root: yaml.MappingNode | None) -> list[yaml.MappingNode]:
    """Return the items of `images`, after checking their types."""
    if root is None:
        return []
    if [name.value for name, _ in root.value].count("images") > 1:
        raise KustomizationError("stands there more than once; keep one list", at="images")
    images = yaml_text.value_of(root, "images")
    if images is None or _is_null(images):
        return []
    if not isinstance(images, yaml.SequenceNode):
        raise KustomizationError(f"must be a list of entries with a name, not {described(images)}", at="images")
    for index, item in enumerate(images.value):
        field = f"images[{index}]"
        if not isinstance(item, yaml.MappingNode):
            raise KustomizationError(f"must be an entry with a name, not {described(item)}", at=field)
        for key in _ENTRY_KEYS:
            value = yaml_text.value_of(item, key)
            if value is not None and not isinstance(value, yaml.ScalarNode):
                raise KustomizationError(f"must be text, not {described(value)}", at=f"{field}.{key}")
        if not _text_of(item, "name"):
            raise KustomizationError("is missing; name the image that the manifests use", at=f"{field}.name")
    return list(images.value)


def _entries(text: str) -> list[_Entry]:
    return [_entry(item) for item in _items(_root(text))]


def _entry(item: yaml.MappingNode) -> _Entry:
    name, *rest = (_text_of(item, key) for key in _ENTRY_KEYS)
    return _Entry(name or "", *rest)


def _text_of(item: yaml.MappingNode, key: str) -> str | None:
    value = yaml_text.value_of(item, key)
    return None if value is None or _is_null(value) else str(value.value)


def _spellings(images: Sequence[PromotedImage], used: Iterable[str]) -> dict[str, list[str]]:
    """Return the spellings that manifests use for the repositories of `images`, by repository and in order."""
    found: dict[str, list[str]] = {image.reference.canonical: [] for image in images}
    for text in dict.fromkeys(used):
        try:
            reference = ImageReference.parse(text)
        except ImageReferenceError:
            continue
        spelt = found.get(reference.canonical)
        if spelt is not None and reference.repository not in spelt:
            spelt.append(reference.repository)
    return found


def _set_image(text: str, image: PromotedImage, spelt: Sequence[str]) -> str:
    entries = _entries(text)
    chosen = _chosen(entries, image)
    for index in chosen:
        text = _update_entry(text, index, image.reference)
    names = {entry.name for entry in entries}
    missing = [name for name in spelt if name not in names]
    if not chosen and not missing:
        missing = [image.reference.repository]
    for name in missing:
        text = _add_entry(text, _root(text), name, image.reference)
    return text


def _chosen(entries: list[_Entry], image: PromotedImage) -> list[int]:
    """Return the indexes of the entries that promote the image."""
    repository = image.reference.canonical

    def is_it(name: str | None) -> bool:
        return name is not None and ImageReference(name).canonical == repository

    rules: list[Callable[[_Entry], bool]] = [
        lambda entry: is_it(entry.name) or is_it(entry.new_name),
        lambda entry: bool(image.name) and entry.name == image.name,
    ]
    found = ([index for index, entry in enumerate(entries) if rule(entry)] for rule in rules)
    return next((indexes for indexes in found if indexes), [])


def _update_entry(text: str, index: int, reference: ImageReference) -> str:
    item = _items(_root(text))[index]
    for key, value in _wanted(_entry(item), reference).items():
        item = _items(_root(text))[index]
        present = yaml_text.value_of(item, key)
        if value is None and present is not None and not _is_null(present):
            text = yaml_text.drop_key(text, item, key).apply(text)
        elif value is not None and not (present is not None and _is_text(present, value)):
            earlier = _ENTRY_KEYS[: _ENTRY_KEYS.index(key)]
            text = yaml_text.set_key(text, item, key, value, after=earlier).apply(text)
    return text


def _wanted(entry: _Entry, reference: ImageReference) -> dict[str, str | None]:
    """Return the fields of an entry that promotes `reference`; None means that the field must be absent."""
    names = [name for name in (entry.name, entry.new_name) if name is not None]
    known = any(ImageReference(name).canonical == reference.canonical for name in names)
    new_name = entry.new_name if known else reference.repository
    return {"newName": new_name, "newTag": reference.tag, "digest": reference.digest, "tagSuffix": None}


def _add_entry(text: str, root: yaml.MappingNode | None, name: str, reference: ImageReference) -> str:
    pairs = [("name", name)]
    pairs += [(key, value) for key, value in (("newTag", reference.tag), ("digest", reference.digest)) if value]
    images = yaml_text.value_of(root, "images") if root is not None else None
    indent = _list_indent(root)
    if root is None or images is None:
        return yaml_text.append_key(text, root, "images", pairs, indent=indent).apply(text)
    if isinstance(images, yaml.SequenceNode) and images.value:
        return yaml_text.append_item(text, images, pairs).apply(text)
    column = None if root.flow_style else root.start_mark.column + indent
    return yaml_text.fill_empty_list(text, images, pairs, indent=column).apply(text)


def _list_indent(root: yaml.MappingNode | None) -> int:
    """Return the number of columns by which the lists of this file are indented below their keys; 0 without a list."""
    for _, value in root.value if root is not None else ():
        if isinstance(value, yaml.SequenceNode) and not value.flow_style:
            return int(value.start_mark.column - root.start_mark.column) if root is not None else 0
    return 0


def _only_images_changed(before: str, after: str, images: Sequence[PromotedImage]) -> bool:
    """Return whether the edit set the images, and changed nothing else."""
    old = _root(before)
    new = _root(after)
    rest = _outside_images(new)
    rest_before = _outside_images(old)
    if len(rest) != len(rest_before) or not all(map(yaml_text.same, rest, rest_before)):
        return False
    entries = [_entry(item) for item in _items(new)]
    was = [_entry(item) for item in _items(old)]
    touched = {index for image in images for index in _chosen(entries, image)}
    return all(entries[index] == entry for index, entry in enumerate(was) if index not in touched) and all(
        _promotes(entries, image) for image in images
    )


def _outside_images(root: yaml.MappingNode | None) -> list[yaml.Node]:
    pairs = root.value if root is not None else []
    return [node for name, value in pairs if name.value != "images" for node in (name, value)]


def _promotes(entries: list[_Entry], image: PromotedImage) -> bool:
    chosen = [entries[index] for index in _chosen(entries, image)]
    wanted = (image.reference.tag, image.reference.digest, None)
    return bool(chosen) and all(
        (entry.new_tag, entry.digest, entry.tag_suffix) == wanted
        and image.reference.canonical in (entry.yields.canonical, ImageReference(entry.name).canonical)
        for entry in chosen
    )


def _is_text(node: yaml.Node, value: str) -> bool:
    return node.tag == "tag:yaml.org,2002:str" and node.value == value


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"
