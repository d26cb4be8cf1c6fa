"""Apply the filters of an instance to the files that its inputs have written.

    parameters.commodore.postprocess.filters:     postprocess/filters.yml of the component:
      - type: jsonnet                               filters:
        filter: postprocess/patch.jsonnet             - filter: patch.jsonnet
        path: web/chart                                 output_path: web/chart
      - type: builtin
        filter: helm_namespace
        path: web/chart
        filterargs: {namespace: web}

A Jsonnet filter is an object, and each key `k` the content of the file `<path>/k.yaml`. It reads earlier files below
`std.extVar('output_path')`. A filter that is wrong is an error: without it, the manifests would be others than meant.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kardinal.catalog.errors import CatalogError, Where
from kardinal.catalog.values import Merged, RenderJob
from kardinal.catalog.worker.emit import filtered
from kardinal.catalog.worker.files import Files, confined
from kardinal.catalog.worker.jsonnet import Jsonnet
from kardinal.catalog.worker.natives import Natives
from kardinal.catalog.worker.output import Output
from kardinal.objects.text import cut

__all__ = ["Filter", "apply_filter", "read_filters"]

_BUILTIN = "helm_namespace"
_HELM_NAMESPACE = """
local com = import 'lib/commodore.libjsonnet';
local kube = import 'lib/kube.libjsonnet';
local namespace = std.extVar('namespace');
local exclude = std.parseJson(std.extVar('exclude_objects'));
com.addNamespaceToHelmOutput(std.extVar('output_path'), namespace, exclude)
+ (if std.extVar('create_namespace') == 'true' then { '00_namespace': kube.Namespace(namespace) } else {})
"""
_FILE = "postprocess/filters.yml"
_PARAMETER = "commodore.postprocess.filters"
_REFERENCE = re.compile(r"\$\{([^${}]+)\}")
_MOST_REFERENCES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """`file`: the Jsonnet file of the filter below the directory of the compilation; empty for `helm_namespace`."""

    file: str
    path: str
    arguments: Mapping[str, Any]
    where: Where


def read_filters(job: RenderJob, node: Merged, files: Files, base: str) -> list[Filter]:
    """Return the filters that are enabled: those of the parameters, then those of filters.yml.

    `base`: the directory of the component. Raises `CatalogError` for the first that is wrong.
    """
    found = list[Filter]()
    commodore = _object(node.parameters.get("commodore"))
    entries = _object(commodore.get("postprocess")).get("filters")
    for index, entry in enumerate(_list(entries, _where(job, _PARAMETER))):
        where = _where(job, f"{_PARAMETER}[{index}]")
        found += _read(entry, where, files, base)
    if job.filters is not None:
        where = Where(repository=f"component {job.component}", file=_FILE, instance=job.instance)
        for entry in _list(_object(job.filters).get("filters"), where):
            found += _read(_of_file(_resolved(entry, node, where), where), where, files, base)
    return found


def apply_filter(
    entry: Filter, job: RenderJob, *, jsonnet: Jsonnet, natives: Natives, files: Files, output: Output
) -> None:
    """Run a filter, and write its files. Raises `CatalogError`."""
    directory = output.below(entry.path)
    variables = {"target": job.component, "component": job.component, "output_path": directory}
    if entry.file:
        value = jsonnet.evaluate(entry.file, {**entry.arguments, **variables}, natives.of_filters())
    else:
        if not files.is_directory(directory):
            raise CatalogError(
                "render",
                f"no input has written files below {cut(entry.path, 200)}",
                remedy="Correct the path of the filter; it is below the output of the instance",
            )
        own = _of_helm_namespace(entry.arguments, entry.where)
        value = jsonnet.evaluate_text(_BUILTIN, _HELM_NAMESPACE, {**own, **variables}, natives.of_filters())
    if not isinstance(value, dict):
        raise CatalogError(
            "render",
            f"the value of the filter is of type {type(value).__name__}",
            remedy="Let the filter be an object with one key for each file",
        )
    for key, content in value.items():
        output.write(directory, f"{key}.yaml", filtered(content))


def _where(job: RenderJob, parameter: str) -> Where:
    return Where(
        repository=f"component {job.component}",
        file=f"class/{job.component}.yml",
        instance=job.instance,
        parameter=parameter,
    )


def _of_file(entry: Any, where: Where) -> dict[str, Any]:
    """Return an entry of filters.yml in the form of the parameters."""
    if not isinstance(entry, dict):
        raise _wrong(where, "the filter is not an object", "Write filter and output_path")
    kind = entry.get("type", "jsonnet")
    form = {name: value for name, value in entry.items() if name != "output_path"} | {"type": kind}
    if kind == "jsonnet":
        form["path"] = entry.get("output_path", entry.get("path", "."))
        if isinstance(entry.get("filter"), str):
            form["filter"] = f"postprocess/{_below(entry['filter'], where)}"
    return form


def _read(entry: Any, where: Where, files: Files, base: str) -> list[Filter]:
    """Return the filter of an entry in the form of the parameters; none if it is disabled."""
    if not isinstance(entry, dict):
        raise _wrong(where, "the filter is not an object", "Write type, filter and path")
    for name in ("type", "filter", "path"):
        if not isinstance(entry.get(name), str):
            raise _wrong(where, f"the filter has no text {name}", "Write type, filter and path")
    enabled = entry.get("enabled", True)
    if not isinstance(enabled, bool):
        raise _wrong(where, "enabled is neither true nor false", "Write it without quotes")
    arguments = entry.get("filterargs", {})
    if not isinstance(arguments, dict):
        raise _wrong(where, "filterargs is not an object", "Write one key for each argument")
    kind = entry["type"]
    name = entry["filter"]
    if kind == "builtin":
        if name != _BUILTIN:
            raise _wrong(where, f"there is no builtin filter {cut(name, 100)!r}", f"Use {_BUILTIN}, or a Jsonnet file")
        _of_helm_namespace(arguments, where)
        file = ""
    elif kind == "jsonnet":
        file = posixpath.join(base, _below(name, where))
        if not files.is_file(file):
            raise _wrong(where, f"there is no file {cut(name, 200)}", "Name a file of the component")
        for argument, value in arguments.items():
            if not isinstance(value, str):
                raise _wrong(where, f"the argument {argument} is not a text", "Write it in quotes")
    else:
        raise _wrong(where, f"the filter type {cut(kind, 100)!r} is unknown", "Use jsonnet or builtin")
    return [Filter(file=file, path=entry["path"], arguments=arguments, where=where)] if enabled else []


def _of_helm_namespace(arguments: Mapping[str, Any], where: Where) -> dict[str, str]:
    """Return the external variables of `helm_namespace`."""
    namespace = arguments.get("namespace")
    if not isinstance(namespace, str):
        raise _wrong(where, f"{_BUILTIN} has no argument namespace", "Write filterargs: {namespace: …}")
    create = arguments.get("create_namespace", False)
    if create not in (True, False, "true", "false"):
        raise _wrong(where, "create_namespace is neither true nor false", "Write one of the two")
    excluded = arguments.get("exclude_objects", [])
    if not isinstance(excluded, list) or not all({"kind", "name"} <= set(_object(item)) for item in excluded):
        raise _wrong(where, "exclude_objects is not a list of kind and name", "Write {kind: …, name: …} for each")
    return {
        "namespace": namespace,
        "create_namespace": "true" if create in (True, "true") else "false",
        "exclude_objects": json.dumps(excluded),
    }


def _resolved(value: Any, node: Merged, where: Where) -> Any:
    """Return a value of filters.yml with its references to parameters, such as `${web:namespace}`, resolved."""
    match value:
        case dict():
            return {key: _resolved(item, node, where) for key, item in value.items()}
        case list():
            return [_resolved(item, node, where) for item in value]
        case str():
            return _resolved_text(value, node, where)
    return value


def _resolved_text(text: str, node: Merged, where: Where) -> Any:
    for _ in range(_MOST_REFERENCES):
        found = _REFERENCE.search(text)
        if found is None:
            return text
        value = _parameter(found[1], node, where)
        if found[0] == text:
            return value
        text = f"{text[: found.start()]}{value if isinstance(value, str) else json.dumps(value)}{text[found.end() :]}"
    raise _wrong(where, f"a text has more than {_MOST_REFERENCES:,} references", "Put the text into a parameter")


def _parameter(reference: str, node: Merged, where: Where) -> Any:
    path, default, fallback = reference.partition("::")
    value: Any = node.parameters
    for name in path.split(":"):
        if not isinstance(value, dict) or name not in value:
            if default:
                return fallback
            raise _wrong(where, f"there is no parameter {cut(path, 200)}", "Define it, or write ${…::default}")
        value = value[name]
    return value


def _below(path: str, where: Where) -> str:
    try:
        return confined(path)
    except CatalogError as error:
        raise CatalogError(error.kind, error.problem, where=where, remedy=error.remedy) from None


def _list(entries: Any, where: Where) -> list[Any]:
    if entries is None:
        return []
    if not isinstance(entries, list):
        raise _wrong(where, "the filters are not a list", "Write a list, also for one filter")
    return entries


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _wrong(where: Where, problem: str, remedy: str) -> CatalogError:
    return CatalogError("invalid", problem, where=where, remedy=remedy)
