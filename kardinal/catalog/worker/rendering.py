"""Render the inputs of an instance, in their order, into files; then apply its filters.

A later input sees the files of the earlier ones, and replaces a file of the same path. What an input renders from text
(all but `copy`) has its secret references replaced by tokens.
"""

from __future__ import annotations

import copy
import os.path
import posixpath
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from kardinal.catalog.errors import CatalogError, Where
from kardinal.catalog.values import InstanceFiles, Merged, RenderJob
from kardinal.catalog.worker.emit import TextStyle, json_document, manifest, pruned, yaml_text
from kardinal.catalog.worker.files import SEARCH_PATHS, Files
from kardinal.catalog.worker.filters import apply_filter, read_filters
from kardinal.catalog.worker.inputs import ComponentInput, read_inputs
from kardinal.catalog.worker.jsonnet import Jsonnet
from kardinal.catalog.worker.natives import Natives, node_of
from kardinal.catalog.worker.output import Output
from kardinal.catalog.worker.programs import find_program, helm_documents, kustomize_documents, wrapper_files
from kardinal.catalog.worker.templates import Templates
from kardinal.catalog.worker.tokens import Tokens
from kardinal.objects.text import cut

__all__ = ["render_instance"]

_TEXT_STYLES: Mapping[str, TextStyle] = {"literal": "|", "folded": ">", "double-quotes": '"'}
_BY_EXTENSION = ("json", "yaml", "yml")


def render_instance(root: Path, job: RenderJob, inventory: Mapping[str, Merged]) -> InstanceFiles:
    """Return the files of an instance. `root`: the directory of the compilation, with its layout.

    `inventory` has the nodes of all instances. Blocks. Raises `CatalogError`.
    """
    return _Instance(root, job, inventory).rendered()


class _Instance:
    def __init__(self, root: Path, job: RenderJob, inventory: Mapping[str, Merged]) -> None:
        self._job = job
        self._node = inventory[job.instance]
        self._inventory = inventory
        self._files = Files(root)
        base = self._node.parameters.get("_base_directory")
        self._base = base if isinstance(base, str) else f"dependencies/{job.instance}"
        self._output = Output(self._files, job.instance, self._base)
        self._tokens = Tokens(job.references)
        self._templates = Templates(self._files)
        self._natives = Natives(self._files, self._templates, inventory, job.instance)
        self._jsonnet = Jsonnet(self._files, self._natives)
        style = self._node.parameters.get("multiline_string_style") or "literal"
        self._text_style = _TEXT_STYLES.get(style) if isinstance(style, str) else "|"
        self._notices: list[str] = []

    def rendered(self) -> InstanceFiles:
        inputs = read_inputs(self._job, self._node)
        renderers: Mapping[str, Callable[[ComponentInput, str, str], None]] = {
            "copy": self._copy,
            "jinja2": self._render_jinja2,
            "jsonnet": self._render_jsonnet,
            "helm": self._render_helm,
            "kustomize": self._render_kustomize,
            "external": self._render_wrapper,
        }
        for item in inputs:
            find_program(item)
        filters = read_filters(self._job, self._node, self._files, self._base)
        for item in inputs:
            try:
                directory = self._output.place(item.output_path)
                for path in self._paths(item):
                    renderers[item.type](item, path, directory)
            except CatalogError as error:
                located = _located(error, item.where)
                if error.kind != "render" or not item.options.get("continue_on_compile_error"):
                    raise located from error
                self._notices.append(f"an input failed and is left out, because it says so: {located}")
        for entry in filters:
            try:
                apply_filter(
                    entry,
                    self._job,
                    jsonnet=self._jsonnet,
                    natives=self._natives,
                    files=self._files,
                    output=self._output,
                )
            except CatalogError as error:
                raise _located(error, entry.where) from error
        return self._output.result(tuple(self._notices))

    def _paths(self, entry: ComponentInput) -> list[str]:
        """Return the files and directories that the input names, without duplicates, sorted for each pattern."""
        if entry.type == "external":
            # The path of the wrapper, which is no file here.
            return list(entry.paths)
        paths = list[str]()
        for pattern in entry.paths:
            found = self._files.glob(pattern)
            if not found and not entry.ignores_missing:
                raise CatalogError(
                    "render",
                    f"there is nothing at the input path {cut(pattern, 200)!r}",
                    remedy=f"Correct the path, which is sought in {', '.join(SEARCH_PATHS)}, or set ignore_missing",
                )
            paths += found
        return paths

    def _render_jsonnet(self, entry: ComponentInput, path: str, directory: str) -> None:
        value = self._jsonnet.evaluate(path, {"target": self._job.instance}, self._natives.of_inputs())
        if not isinstance(value, dict):
            value = {os.path.splitext(posixpath.basename(path))[0]: value}
        for key, item in value.items():
            self._write_value(entry, directory, key, item)

    def _render_jinja2(self, entry: ComponentInput, path: str, directory: str) -> None:
        if self._files.is_file(path):
            above = posixpath.dirname(path)
            names = [posixpath.basename(path)]
        else:
            above = path
            names = sorted(self._files.walk(path))
        variables = self._variables | {
            "input_params": {"compile_path": directory, **entry.options.get("input_params", {})}
        }
        suffix = entry.options.get("suffix_stripped", ".j2") if entry.options.get("suffix_remove") else ""
        for name in names:
            if posixpath.basename(name).startswith("."):
                continue
            template = posixpath.join(above, name)
            content = self._tokens.replaced(self._templates.render(template, variables)).encode()
            # kapitan strips the characters of the suffix, not the suffix: `a2.j2` becomes `a`.
            written = name.rstrip(suffix) if suffix and name.endswith(suffix) else name
            self._output.write(directory, written, content, executable=self._files.is_executable(template))

    def _render_helm(self, entry: ComponentInput, path: str, directory: str) -> None:
        for name, documents in helm_documents(entry, path, self._files).items():
            self._write_value(entry, directory, name, documents)

    def _render_kustomize(self, entry: ComponentInput, path: str, directory: str) -> None:
        for document in kustomize_documents(entry, path, self._files):
            names = [str(document.get("metadata", {}).get("name", "")).lower(), str(document.get("kind", "")).lower()]
            name = f"{'-'.join(names)}.yaml" if all(names) else "output.yaml"
            self._output.write(directory, name, yaml_text(self._tokens.replaced(document)).encode())

    def _render_wrapper(self, entry: ComponentInput, path: str, directory: str) -> None:
        for name, content in wrapper_files(entry, self._base, self._files, directory).items():
            self._output.write(directory, name, self._tokens.replaced(content.decode()).encode())

    @cached_property
    def _variables(self) -> dict[str, Any]:
        """The variables of all templates of the instance; its own, because templates can change lists and objects."""
        nodes = copy.deepcopy({name: node_of(merged) for name, merged in self._inventory.items()})
        kapitan = self._node.parameters.get("kapitan")
        own = kapitan.get("vars") if isinstance(kapitan, dict) else None
        return {
            "inventory": nodes[self._job.instance],
            "inventory_global": nodes,
            **(own if isinstance(own, dict) else {}),
        }

    def _copy(self, entry: ComponentInput, path: str, directory: str) -> None:
        if self._files.is_file(path):
            self._copy_file(path, directory, posixpath.basename(path))
        else:
            for name in self._files.walk(path):
                self._copy_file(posixpath.join(path, name), directory, name)

    def _copy_file(self, path: str, directory: str, name: str) -> None:
        self._output.write(directory, name, self._files.read(path), executable=self._files.is_executable(path))

    def _write_value(self, entry: ComponentInput, directory: str, name: str, value: Any) -> None:
        """Write the value of a file in the output type of the input, by default YAML."""
        if entry.options.get("prune"):
            value = pruned(value)
        kind = "auto" if entry.type == "helm" else entry.options.get("output_type", "yaml")
        extension = f".{kind}"
        if kind == "auto":
            found = os.path.splitext(name)[1].removeprefix(".")
            kind = found if found in _BY_EXTENSION else "yaml"
            extension = "" if found in _BY_EXTENSION else ".yaml"
        value = self._tokens.replaced(value)
        try:
            if kind == "plain":
                content = value.encode()
                extension = ""
            elif kind == "json":
                content = json_document(value)
            else:
                content = manifest(value, text_style=self._text_style)
        except (AttributeError, TypeError):
            raise CatalogError(
                "render",
                f"the value of {cut(name, 200)} is of type {type(value).__name__}, which is no {kind} document",
                remedy="Write an object or a list; a text with output_type plain",
            ) from None
        self._output.write(directory, f"{name}{extension}", content)


def _located(error: CatalogError, where: Where) -> CatalogError:
    """Return an error with the place of its input or filter: the class, or the file of the error if that is known."""
    if error.where.file:
        where = Where(file=error.where.file, line=error.where.line, instance=where.instance, parameter=where.parameter)
    return CatalogError(error.kind, error.problem, where=where, remedy=error.remedy)
