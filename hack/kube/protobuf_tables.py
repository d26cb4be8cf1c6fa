"""Write what Go knows of the built-in types, from their sources: `python -m hack.kube.protobuf_tables`.

Typed clients write protobuf, whose field numbers stand in the `generated.proto` files of Kubernetes' API modules. How
the same types look in JSON stands in the struct tags beside them: the name of a field, whether it is behind a pointer,
whether an empty value is left out. Neither file has both, so both are read; modules come from Go's own cache, in the
version that `hack/kube/go.mod` names.

One type per line: its name, then its fields as `NUMBER NAME FORM TYPE [GO TYPE]`, explained in
`kardinal_local.plane.builtin.types`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hack.kube import builtin_schemas
from hack.kube.asking import Ask, real_server

__all__ = ["OUTPUT", "tables"]

OUTPUT = builtin_schemas.OUTPUT.with_name("types.txt")
MODULES = ("api", "apiextensions-apiserver", "apimachinery")
SECONDS = 60
SCALARS = {"string", "bool", "int32", "int64", "double", "bytes"}
GO_SCALARS = {"string", "bool", "int32", "int64", "float64", "int"}


_MESSAGE = re.compile(r"^message (\w+) \{(.*?)^\}", re.MULTILINE | re.DOTALL)
_PROTO_FIELD = re.compile(
    r"^  (?:(optional|repeated|required) ([\w.]+)|map<string, ([\w.]+)>) (\w+) = (\d+);", re.MULTILINE
)
_STRUCT = re.compile(r"^type (\w+) struct \{(.*?)^\}", re.MULTILINE | re.DOTALL)
_GO_FIELD = re.compile(r"^\t(?:(\w+) +)?(\S+) +`(.*protobuf:.*)`", re.MULTILINE)
_NUMBER = re.compile(r'protobuf:"\w+,(\d+),')
_JSON = re.compile(r'json:"([^"]*)"')
_ALIAS = re.compile(r"\b(metav1|corev1)\.")
_EMBEDDED_TYPE = re.compile(r"^\t(?:metav1\.)?TypeMeta +`json:\",inline\"", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _GoField:
    """One field of a Go struct: its JSON name (empty when its fields are inlined), its options, its type."""

    json: str
    options: frozenset[str]
    type: str


def tables(ask: Ask) -> dict[str, str]:
    """Return the row of every type, by name."""
    protos: dict[str, str] = {}
    structs: dict[str, str] = {}
    for directory in _modules():
        for proto in directory.glob("**/generated.proto"):
            text = proto.read_text()
            package = _schema_name(re.findall(r"^package ([\w.]+);", text, re.MULTILINE)[0])
            protos |= {f"{package}.{name}": body for name, body in _MESSAGE.findall(text)}
            for source in sorted(proto.parent.glob("*.go")):
                if not source.name.startswith(("generated.", "zz_")):
                    structs |= {f"{package}.{name}": body for name, body in _STRUCT.findall(source.read_text())}
    rows: dict[str, str] = {}
    waiting = list(builtin_schemas.schemas(ask))
    while waiting:
        name = waiting.pop()
        if name in rows:
            continue
        fields = list(_fields(name, protos[name], structs.get(name, "")))
        rows[name] = "; ".join(fields)
        waiting.extend(_absolute(field.split(" ")[3], name) for field in fields if "." in field.split(" ")[3])
    return rows


def _modules() -> Iterator[Path]:
    version = re.findall(r"^\tk8s.io/api => k8s.io/api (v\S+)", (Path(__file__).parent / "go.mod").read_text(), re.M)[0]
    cache = subprocess.run(["go", "env", "GOMODCACHE"], capture_output=True, check=True, text=True, timeout=SECONDS)
    for module in MODULES:
        yield Path(cache.stdout.strip()) / "k8s.io" / f"{module}@{version}"


def _schema_name(package: str) -> str:
    """Return the package of a message as OpenAPI spells it."""
    return "io.k8s." + package.removeprefix("k8s.io.").replace("_", "-")


def _absolute(reference: str, inside: str) -> str:
    return inside.rpartition(".")[0] + reference if reference.startswith(".") else reference


def _fields(name: str, message: str, struct: str) -> Iterator[str]:
    go = dict(_go_fields(struct))
    if _EMBEDDED_TYPE.search(struct):
        yield "0 kind -? string"
        yield "0 apiVersion -? string"
    for label, single, mapped, proto_name, number in _PROTO_FIELD.findall(message):
        field = go.get(int(number), _GoField(proto_name, frozenset({"omitempty"}), ""))
        container = "{" if mapped else "[" if label == "repeated" else "-"
        type_ = _reference(single or mapped, name)
        go_type = _named(field.type, type_, name)
        yield f"{number} {field.json or proto_name} {container}{_presence(field)} {type_} {go_type}".rstrip()


def _go_fields(struct: str) -> Iterator[tuple[int, _GoField]]:
    for _, type_, tags in _GO_FIELD.findall(struct):
        number = _NUMBER.search(tags)
        json = _JSON.search(tags)
        if number is None:
            continue
        name, *options = (json[1] if json else "").split(",")
        yield int(number[1]), _GoField(name, frozenset(options), type_)


def _presence(field: _GoField) -> str:
    if "inline" in field.options:
        return "~"
    if field.type.startswith("*"):
        return "*" if "omitempty" in field.options else "^"
    if "omitzero" in field.options:
        return "0"
    return "?" if "omitempty" in field.options else "!"


def _reference(proto_type: str, inside: str) -> str:
    """Return a scalar, or a type: `.Name` when it is of the same package."""
    if proto_type in SCALARS:
        return proto_type
    package = inside.rpartition(".")[0]
    name = _schema_name(proto_type.removeprefix(".")) if "." in proto_type else f"{package}.{proto_type}"
    return name.removeprefix(package) if name.rpartition(".")[0] == package else name


def _named(go_type: str, reference: str, inside: str) -> str:
    """Return the Go type where it is not named like the scalar or message: named strings, numbers, lists and maps."""
    bare = _ALIAS.sub("v1.", go_type.removeprefix("*"))
    prefix = bare[: bare.rindex("]") + 1] if "]" in bare else ""
    element = bare.removeprefix(prefix).removeprefix("*")
    if not element or element in GO_SCALARS or element == "byte":
        return ""
    if "." not in element:
        element = f"{_package(inside)}.{element}"
    message = reference if "." in reference.lstrip(".") else inside.rpartition(".")[0] + reference
    if reference not in SCALARS and element == f"{_package(message)}.{message.rpartition('.')[2]}":
        return ""
    return prefix + element


def _package(name: str) -> str:
    """Return the name that Go gives the package of a type."""
    return name.rsplit(".", 2)[1]


def main() -> None:
    with real_server() as ask:
        rows = tables(ask)
    builtin_schemas.write((f"{name} {rows[name]}".encode() for name in sorted(rows)), OUTPUT)
    print(f"{len(rows)} types in {OUTPUT}", file=sys.stderr)


if __name__ == "__main__":
    main()
