"""Read the list `parameters.kapitan.compile` of an instance: what is rendered, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kardinal.catalog.errors import CatalogError, Where
from kardinal.catalog.values import Merged, RenderJob
from kardinal.objects.text import cut

__all__ = ["ComponentInput", "read_inputs"]

_REFUSED = {
    "cuelang": "use jsonnet",
    "external": "use jsonnet, or kustomize through ${_kustomize_wrapper}",
    "kadet": "use jsonnet",
    "remove": "let the input write only what is wanted",
}
_Option = tuple[type, ...]
_FLAG: _Option = (bool,)
_TEXT: _Option = (str,)
_OBJECT: _Option = (dict,)
_LIST: _Option = (list,)
_COMMON = {
    "name": _TEXT,
    "input_params": _OBJECT,
    "continue_on_compile_error": _FLAG,
    "ignore_missing": _FLAG,
    "output_type": _TEXT,
    "prune": _FLAG,
}
_OPTIONS: Mapping[str, Mapping[str, _Option]] = {
    "jsonnet": {},
    "jinja2": {"suffix_remove": _FLAG, "suffix_stripped": _TEXT},
    "copy": {},
    "helm": {
        "helm_params": _OBJECT,
        "helm_path": _TEXT,
        "helm_values": _OBJECT,
        "helm_values_files": _LIST,
        "kube_version": _TEXT,
    },
    "kustomize": {"namespace": _TEXT, "patches": _OBJECT, "patches_json": _OBJECT, "patches_strategic": _OBJECT},
    "external": {"args": _LIST, "env_vars": _OBJECT},
}
"""The options of each type beside the common ones."""
_OUTPUT_TYPES = ("auto", "json", "plain", "yaml", "yml")
WRAPPER = "_kustomize_wrapper"
"""The parameter with the path of the program that components run for kustomize, as an input of type external."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentInput:
    """One entry of the list. `options`: the options that it names; null counts as not named."""

    type: str
    paths: tuple[str, ...]
    output_path: str
    options: Mapping[str, Any]
    where: Where

    @property
    def ignores_missing(self) -> bool:
        """A path without a file is no error; by default that holds for jinja2 alone."""
        return bool(self.options.get("ignore_missing", self.type == "jinja2"))


def read_inputs(job: RenderJob, node: Merged) -> list[ComponentInput]:
    """Return the inputs of an instance, in order. Raises `CatalogError` for the first that is wrong or refused."""
    kapitan = node.parameters.get("kapitan") or {}
    entries = kapitan.get("compile") if isinstance(kapitan, dict) else None
    if entries is None:
        return []
    where = _place(job, "kapitan.compile")
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        raise _wrong(where, "the list of inputs is not a list", "Write kapitan.compile as a list")
    return [_read(entry, _place(job, f"kapitan.compile[{index}]"), node) for index, entry in enumerate(entries)]


def _place(job: RenderJob, parameter: str) -> Where:
    return Where(
        repository=f"component {job.component}",
        file=f"class/{job.component}.yml",
        instance=job.instance,
        parameter=parameter,
    )


def _read(entry: object, where: Where, node: Merged) -> ComponentInput:
    if not isinstance(entry, dict):
        raise _wrong(where, "the input is not an object", "Write input_type, input_paths and output_path")
    kind = entry.get("input_type")
    if not isinstance(kind, str) or kind not in {*_OPTIONS, *_REFUSED}:
        known = ", ".join(name for name in _OPTIONS if name != "external")
        raise _wrong(where, f"the input type {cut(str(kind), 100)!r} is unknown", f"Use one of: {known}")
    paths = entry.get("input_paths")
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise _wrong(where, "input_paths is not a list of paths", "Write a list, also for one path")
    if kind in _REFUSED and not (kind == "external" and paths == [node.parameters.get(WRAPPER)]):
        raise CatalogError(
            "refused",
            f"inputs of type {kind} are not allowed, because they run programs or remove files",
            where=where,
            remedy=f"Instead, {_REFUSED[kind]}",
        )
    output_path = entry.get("output_path")
    if not isinstance(output_path, str):
        raise _wrong(where, "output_path is not a path", "Write a directory, such as the name of the component")
    return ComponentInput(
        type=kind,
        paths=tuple(paths),
        output_path=output_path,
        options=_options(entry, {**_COMMON, **_OPTIONS[kind]}, where),
        where=where,
    )


def _options(entry: Mapping[str, Any], known: Mapping[str, _Option], where: Where) -> dict[str, Any]:
    options = dict[str, Any]()
    for name, value in entry.items():
        if name in ("input_type", "input_paths", "output_path") or value is None:
            continue
        if name not in known:
            raise _wrong(
                where,
                f"the option {cut(name, 100)!r} is unknown for inputs of type {entry['input_type']}",
                f"Use: {', '.join(sorted(known))}",
            )
        if not isinstance(value, known[name]):
            wanted = " or ".join(option.__name__ for option in known[name])
            raise _wrong(where, f"{name} is of type {type(value).__name__}", f"Write a value of type {wanted}")
        options[name] = value
    output_type = options.get("output_type", "yaml")
    if output_type not in _OUTPUT_TYPES:
        raise CatalogError(
            "refused" if output_type == "toml" else "invalid",
            f"the output type {cut(output_type, 100)!r} is not supported",
            where=where,
            remedy=f"Use one of: {', '.join(_OUTPUT_TYPES)}",
        )
    return options


def _wrong(where: Where, problem: str, remedy: str) -> CatalogError:
    return CatalogError("invalid", problem, where=where, remedy=remedy)
