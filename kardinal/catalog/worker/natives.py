"""The native functions of Jsonnet: those of kapitan, and those of Commodore for filters.

gojsonnet keeps nothing of the error of a native function, so `Natives.failure` has it. It also ends the process for
some values that Python allows; `_portable` refuses these.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import math
import posixpath
from collections.abc import Callable, Mapping
from typing import Any

import yaml

from kardinal.catalog.errors import CatalogError
from kardinal.catalog.values import Merged
from kardinal.catalog.worker.emit import yaml_text
from kardinal.catalog.worker.files import Files
from kardinal.catalog.worker.templates import Templates
from kardinal.catalog.worker.yaml_documents import load_documents
from kardinal.objects.text import cut

__all__ = ["Callback", "Natives", "node_of"]

Callback = tuple[tuple[str, ...], Callable[..., Any]]
"""Parameters and function, as gojsonnet takes them."""

_LARGEST_INTEGER = 1 << 53
_MOST_VALUES = 1_000_000
"""The most values that a function returns; aliases of YAML can stand for billions of them."""
_ENVIRONMENT = "base"
"""Reclass's name for the only environment of an inventory."""
_YAML = (".yml", ".yaml")


def node_of(merged: Merged) -> dict[str, Any]:
    """Return a node as templates see it: `{"parameters": …, "classes": …, "applications": …, "exports": {}}`."""
    return {
        "parameters": merged.parameters,
        "classes": list(merged.classes),
        "applications": list(merged.applications),
        "exports": {},
    }


class Natives:
    """The functions for one instance.

    `failure`: the error of the last function that failed.
    """

    def __init__(self, files: Files, templates: Templates, inventory: Mapping[str, Merged], instance: str) -> None:
        self._files = files
        self._templates = templates
        self._inventory = inventory
        self._instance = instance
        self._nodes: dict[str | None, Any] = {}
        self.failure: Exception | None = None

    def of_inputs(self) -> dict[str, Callback]:
        """Return the functions of kapitan."""
        return self._guarded(
            {
                "jinja2_render_file": (("name", "ctx"), self._jinja2_render_file),
                "file_read": (("name",), lambda name: self._files.read_text(self._found(name))),
                "file_exists": (("name",), self._file_exists),
                "dir_files_list": (("name",), self._dir_files_list),
                "dir_files_read": (("name",), self._dir_files_read),
                "yaml_load": (("name",), self._yaml_load),
                "yaml_load_stream": (("name",), self._yaml_load_stream),
                "yaml_dump": (("obj",), lambda obj: yaml_text(json.loads(obj))),
                "yaml_dump_stream": (("obj",), _yaml_dump_stream),
                "sha256_string": (("obj",), lambda obj: hashlib.sha256(obj.encode()).hexdigest()),
                "gzip_b64": (("obj",), _gzip_b64),
                "jsonschema_validate": (("obj", "schema_obj"), _absent("jsonschema_validate")),
                "topics": (("name",), _absent("topics")),
            }
        ) | {"inventory": (("target", "inv_path"), self._guard(self._node))}

    def of_filters(self) -> dict[str, Callback]:
        """Return the functions of Commodore."""
        return self._guarded(
            {
                "yaml_load": (("file",), lambda file: _only(self._load(file), file)),
                "yaml_load_all": (("file",), self._load),
                "list_dir": (("dir", "basename"), self._list_dir),
            }
        ) | {"commodore_inventory": ((), self._guard(self._node_of_filter))}

    def _node_of_filter(self) -> Any:
        """Return the instance's node with the keys that Commodore adds; those with a path or a time are left out."""
        own = {"environment": _ENVIRONMENT, "name": self._instance, "node": self._instance}
        return self._node(self._instance) | {"__reclass__": own, "environment": _ENVIRONMENT}

    def _guarded(self, functions: Mapping[str, Callback]) -> dict[str, Callback]:
        def portable(function: Callable[..., Any]) -> Callable[..., Any]:
            return lambda *arguments: _portable(function(*arguments), [0])

        return {name: (names, self._guard(portable(function))) for name, (names, function) in functions.items()}

    def _guard(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*arguments: Any) -> Any:
            try:
                return function(*arguments)
            except Exception as error:
                self.failure = error
                raise

        return guarded

    def _node(self, target: str | None, _inventory_path: object = None) -> Any:
        if target is not None and target not in self._inventory:
            raise CatalogError(
                "render",
                f"the inventory has no node {cut(str(target), 100)!r}",
                remedy=f"Name one of: {', '.join(sorted(self._inventory))}",
            )
        if target not in self._nodes:
            nodes = {name: node_of(merged) for name, merged in sorted(self._inventory.items())}
            self._nodes[target] = _portable(nodes if target is None else nodes[target], [0])
        return self._nodes[target]

    def _found(self, name: str) -> str:
        found = self._files.find(name)
        if found is None:
            raise FileNotFoundError(name)
        return found

    def _jinja2_render_file(self, name: str, variables: str) -> str:
        return self._templates.render(self._found(name), json.loads(variables))

    def _file_exists(self, name: str) -> dict[str, Any]:
        found = self._files.find(name)
        return {"exists": found is not None, "path": found or ""}

    def _dir_files_list(self, name: str) -> list[str]:
        directory = self._found(name)
        return [file for file in self._files.names(directory) if self._files.is_file(posixpath.join(directory, file))]

    def _dir_files_read(self, name: str) -> dict[str, str]:
        directory = self._found(name)
        return {file: self._files.read_text(posixpath.join(directory, file)) for file in self._dir_files_list(name)}

    def _yaml_load(self, name: str) -> str:
        documents = self._load(self._yaml_file(name))
        return _json(_only(documents, name))

    def _yaml_load_stream(self, name: str) -> str:
        return _json(self._load(self._yaml_file(name)))

    def _yaml_file(self, name: str) -> str:
        if not name.endswith(_YAML):
            raise CatalogError(
                "render", f"{cut(name, 200)} is not the name of a YAML file", remedy="Name a file in .yml or .yaml"
            )
        return self._found(name)

    def _load(self, file: str) -> list[Any]:
        return load_documents(self._files.read_text(file), file)

    def _list_dir(self, directory: str, basename: bool) -> list[str]:
        if not self._files.is_directory(directory):
            raise FileNotFoundError(directory)
        files = [name for name in self._files.names(directory) if self._files.is_file(posixpath.join(directory, name))]
        return files if basename else [posixpath.join(directory, name) for name in files]


def _only(documents: list[Any], file: str) -> Any:
    if len(documents) > 1:
        raise CatalogError(
            "render", f"{file} has {len(documents)} documents", remedy="Load it with yaml_load_stream or yaml_load_all"
        )
    return documents[0] if documents else None


def _yaml_dump_stream(text: str) -> str:
    return str(yaml.safe_dump_all(json.loads(text), default_flow_style=False))


def _gzip_b64(text: str) -> str:
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(text.encode())
    return base64.b64encode(packed.getvalue()).decode()


def _absent(name: str) -> Callable[..., Any]:
    def refuse(*_: object) -> Any:
        raise CatalogError(
            "refused",
            f"kardinal has no native function {name}",
            remedy="Write the check in Jsonnet, for example with assert",
        )

    return refuse


def _json(value: Any) -> str:
    """Return JSON as Python writes it. Keys become text; raises `TypeError` for a date."""
    _portable(value, [0], keys=(str, int, float, bool, type(None)))
    return json.dumps(value)


def _portable(value: Any, count: list[int], *, keys: tuple[type, ...] = (str,)) -> Any:
    """Return a value that gojsonnet takes. Raises `CatalogError` for others, and for more values than there may be."""
    count[0] += 1
    if count[0] > _MOST_VALUES:
        raise CatalogError(
            "limit", f"there are more than {_MOST_VALUES:,} values", remedy="Read smaller files, without YAML aliases"
        )
    match value:
        case None | bool():
            return value
        case str():
            return _portable_text(value)
        case int():
            return value if abs(value) <= _LARGEST_INTEGER else float(value)
        case float():
            if math.isfinite(value):
                return value
            raise _unportable(f"the number {value}")
        case list() | tuple():
            return [_portable(item, count, keys=keys) for item in value]
        case dict():
            for key in value:
                if not isinstance(key, keys):
                    raise _unportable(f"the key {key!r}, which is not a text")
            return {
                _portable_text(key) if isinstance(key, str) else key: _portable(item, count, keys=keys)
                for key, item in value.items()
            }
    raise _unportable(f"a value of type {type(value).__name__}, such as a date without quotes")


def _portable_text(text: str) -> str:
    """Return a text up to U+0000, where gojsonnet ends it, also in Commodore."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _unportable("a text with half of a surrogate pair") from None
    return text.partition("\0")[0]


def _unportable(what: str) -> CatalogError:
    return CatalogError("render", f"Jsonnet cannot take {what}", remedy="Write it as a text in quotes")
