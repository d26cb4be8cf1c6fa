"""The dialect of `spec.nodes`: the keywords of a node and their meaning.

The dialect still changes, so every decision about it is in this module; the rest of the engine sees only
`Declaration`. A keyword of the dialect that this version does not implement is refused by name, because a modifier that
is silently ignored would be a gate that silently opens. An unknown keyword is most likely a typo: its error suggests
the nearest known one.

The keyword of the body says what the node is: `template`, `patch`, `ref`, `watch` or `def`. There is one exception:
some documents write a bare identity (`apiVersion`, `kind`, `metadata.name` and nothing else) under `template` where
they mean a reference; see `Declaration.ambiguous`.

    - id: quota
      forEach: {team: "${teams.data.names}"}      # one object for each item of the list
      template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "quota-${team}"}}
      dependsOn: [freeze]                         # comes after a node that it does not mention
      lifecycle: {apply: Force}                   # takes fields that another manager owns
      recheckAfter: 5m                            # looks again, whether anything has changed or not
      timeout: 1h                                 # says so when an object is not ready for that long
    - id: backup
      finalizes: quota                            # made when a quota is to be deleted, which waits until it is ready
      template: {apiVersion: batch/v1, kind: Job, metadata: {name: backup}, spec: {...}}
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson

from kardinal.cel.functions import TYPE_NAMES
from kardinal.graph.errors import GraphProblem
from kardinal.objects import JsonObject, NodeKind
from kardinal.objects.duration import DurationError, format_duration, parse_duration
from kardinal.objects.suggestions import nearest

__all__ = [
    "DIALECT_VERSION",
    "NODE_LIMIT",
    "WORDS",
    "Declaration",
    "ForEach",
    "body_problems",
    "has_hooks",
    "parse_nodes",
]

DIALECT_VERSION = "v1alpha1"

NODE_LIMIT = 1000
SIZE_LIMIT = 512 * 1024
SHORTEST_RECHECK = timedelta(seconds=5)

_BODIES: dict[str, NodeKind] = {
    "template": "template",
    "patch": "patch",
    "ref": "ref",
    "reference": "ref",
    "watch": "watch",
    "def": "def",
}
_ONE_OF = "template, patch, ref, watch and def"
_CONDITIONS = ("readyWhen", "propagateWhen", "includeWhen")
_MODIFIERS = ("dependsOn", "finalizes", "forEach", "lifecycle", "recheckAfter", "timeout")
WORDS = frozenset(["id", *_BODIES, *_CONDITIONS, *_MODIFIERS]) - {"reference"}
"""The words of a node, without a second name for one."""
_KNOWN = WORDS | {"reference"}
_UNAVAILABLE = frozenset(["onTimeout", "metric"])
"""Keywords of the Graph dialect that this version does not implement. They are refused by name."""

_OF_KINDS: Mapping[str, frozenset[NodeKind]] = {
    "forEach": frozenset(["template", "patch", "def"]),
    "lifecycle": frozenset(["template"]),
    "finalizes": frozenset(["template", "patch", "ref", "watch"]),
}
"""The modifiers that have a meaning with some bodies only."""

_IDENTIFIER = re.compile(r"[a-zA-Z][a-zA-Z0-9]{0,62}")
_API_VERSION = re.compile(r"([a-z0-9.-]+/)?v\d+((alpha|beta)\d+)?")
_RESERVED = frozenset(
    [
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"),
        *("let", "loop", "package", "return", "var", "void", "while", "self", "namespace", "each", "item"),
    ]
)
_A_TYPE = "is the name of a type in expressions: take another one"
_INTERNAL = "internal.kro.run"


@dataclass(frozen=True, slots=True)
class ForEach:
    """The list over which a node repeats: `{team: "${teams.data.names}"}`, or the list alone for `item`."""

    variable: str
    expression: str
    path: str


@dataclass(frozen=True, slots=True)
class Declaration:
    """One node as its author wrote it. Messages name fields below `path`, for example `spec.nodes[2].template`.

    `body` is a text if one expression makes all of it.
    """

    id: str
    path: str
    kind: NodeKind
    keyword: str
    body: JsonObject | str
    ready_when: tuple[str, ...] = ()
    propagate_when: tuple[str, ...] = ()
    include_when: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    for_each: ForEach | None = None
    force: bool = False
    finalizes: str | None = None
    """The id of the node whose objects are deleted only when this one is ready."""
    recheck_after: timedelta | None = None
    timeout: timedelta | None = None

    @property
    def ambiguous(self) -> bool:
        """Return whether this is only an identity: a reference to an object if it exists, or an object to create."""
        return (
            self.kind == "template"
            and isinstance(self.body, dict)
            and set(self.body) == {"apiVersion", "kind", "metadata"}
            and set(self.body["metadata"]) <= {"name", "namespace"}
        )


def parse_nodes(spec: Mapping[str, Any]) -> tuple[list[Declaration], list[GraphProblem]]:
    """Return the valid declarations of `spec.nodes`, and the problems of the others."""
    nodes = spec.get("nodes", [])
    if "resources" in spec:
        return [], [GraphProblem("DeclarationError", "spec.resources", "the nodes of a Graph stand in spec.nodes")]
    if not isinstance(nodes, list) or not all(isinstance(node, dict) for node in nodes):
        return [], [GraphProblem("DeclarationError", "spec.nodes", "must be a list of nodes")]
    if len(nodes) > NODE_LIMIT:
        return [], [GraphProblem("DeclarationError", "spec.nodes", f"more than {NODE_LIMIT} nodes")]
    if len(orjson.dumps(nodes)) > SIZE_LIMIT:
        return [], [GraphProblem("DeclarationError", "spec.nodes", f"larger than {SIZE_LIMIT // 1024} KiB")]
    declarations = []
    problems = []
    taken: dict[str, str] = {}
    for index, node in enumerate(nodes):
        path = f"spec.nodes[{index}]"
        found = [*_identifier_problems(node, path, taken), *_node_problems(node, path)]
        problems += found
        if isinstance(identifier := node.get("id"), str):
            taken.setdefault(identifier.lower(), path)
            if not found:
                declarations.append(_declaration(node, identifier, path))
    return declarations, problems


def has_hooks(spec: Mapping[str, Any]) -> bool:
    """Return whether a node of `spec` finalizes another one."""
    nodes = spec.get("nodes")
    return any(isinstance(node, dict) and "finalizes" in node for node in (nodes if isinstance(nodes, list) else ()))


def _declaration(node: JsonObject, identifier: str, path: str) -> Declaration:
    keyword = next(word for word in _BODIES if word in node)
    return Declaration(
        id=identifier,
        path=path,
        kind=_BODIES[keyword],
        keyword=keyword,
        body=node[keyword],
        ready_when=tuple(node.get("readyWhen", ())),
        propagate_when=tuple(node.get("propagateWhen", ())),
        include_when=tuple(node.get("includeWhen", ())),
        depends_on=tuple(node.get("dependsOn", ())),
        for_each=_for_each(node, path),
        force=node.get("lifecycle", {}).get("apply") == "Force",
        finalizes=node.get("finalizes"),
        recheck_after=_duration(node, "recheckAfter"),
        timeout=_duration(node, "timeout"),
    )


def _for_each(node: JsonObject, path: str) -> ForEach | None:
    match node.get("forEach"):
        case None:
            return None
        case str(expression):
            return ForEach("item", expression, f"{path}.forEach")
        case [dict(variables)] | dict(variables):
            ((variable, expression),) = variables.items()
            return ForEach(variable, expression, f"{path}.forEach.{variable}")
        case other:
            raise TypeError(f"a forEach that was not checked: {other!r}")


def _duration(node: JsonObject, word: str) -> timedelta | None:
    return parse_duration(node[word]) if word in node else None


def _identifier_problems(node: JsonObject, path: str, taken: Mapping[str, str]) -> Iterator[GraphProblem]:
    identifier = node.get("id")
    if not isinstance(identifier, str) or not identifier:
        yield GraphProblem("DeclarationError", f"{path}.id", "a node needs an id")
    elif not _IDENTIFIER.fullmatch(identifier):
        message = f"{identifier[:80]!r} is no id: at most 63 letters and digits, the first a letter"
        yield GraphProblem("DeclarationError", f"{path}.id", message)
    elif identifier.lower() in _RESERVED:
        yield GraphProblem("DeclarationError", f"{path}.id", f"{identifier!r} is a reserved word", identifier)
    elif identifier.lower() in taken:
        message = f"{identifier!r} is already the id of {taken[identifier.lower()]} (case does not count)"
        yield GraphProblem("DeclarationError", f"{path}.id", message, identifier)


def _node_problems(node: JsonObject, path: str) -> Iterator[GraphProblem]:
    identifier = node.get("id") if isinstance(node.get("id"), str) else None

    def problem(field: str, message: str) -> GraphProblem:
        return GraphProblem("DeclarationError", f"{path}{field}", message, identifier)

    for word in node:
        if word in _UNAVAILABLE:
            yield problem(f".{word}", "not available in this version")
        elif word not in _KNOWN and not word.startswith("x-"):
            near = nearest(word, [*_KNOWN, *_UNAVAILABLE])
            yield problem(f".{word}", f"unknown word{f' (did you mean {near}?)' if near else ''}")
    bodies = [word for word in _BODIES if word in node]
    if len(bodies) > 1:
        yield problem("", f"has {' and '.join(bodies)}, but a node is exactly one of {_ONE_OF}")
    elif not bodies:
        yield problem("", f"needs one of {_ONE_OF}")
    for word in _CONDITIONS:
        if word in node and not _is_list_of_texts(node[word]):
            yield problem(f".{word}", "must be a list of expressions")
    kinds = {_BODIES[word] for word in bodies}
    if identifier in TYPE_NAMES and ("forEach" in node or kinds & {"watch", "def"}):
        # The fields of an object are read by its id all the same; a list or a value is read whole.
        yield problem(".id", f"{identifier!r} {_A_TYPE}")
    if not node.keys().isdisjoint(_MODIFIERS):
        yield from (problem(field, message) for field, message in _modifier_problems(node, kinds))
    for word in bodies:
        yield from (problem(f".{word}{field}", message) for field, message in body_problems(_BODIES[word], node[word]))


def _is_list_of_texts(given: object) -> bool:
    return isinstance(given, list) and all(isinstance(text, str) for text in given)


def _modifier_problems(node: JsonObject, kinds: Set[NodeKind]) -> Iterator[tuple[str, str]]:
    if not _is_list_of_texts(node.get("dependsOn", [])):
        yield ".dependsOn", "must be a list of ids of other nodes"
    if not isinstance(node.get("finalizes", ""), str):
        yield ".finalizes", "must be the id of another node"
    for word in ("recheckAfter", "timeout"):
        if word in node:
            yield from _duration_problems(word, node[word])
    if "forEach" in node:
        yield from _for_each_problems(node["forEach"])
    if "lifecycle" in node and node["lifecycle"] not in ({}, {"apply": "Force"}):
        yield ".lifecycle", "is {apply: Force} or absent"
    for word, owners in _OF_KINDS.items():
        if word in node and kinds and not kinds & owners:
            yield f".{word}", f"is for {' and '.join(sorted(owners))}"


def _duration_problems(word: str, text: object) -> Iterator[tuple[str, str]]:
    try:
        duration = parse_duration(text if isinstance(text, str) else str(text))
    except DurationError as error:
        yield f".{word}", str(error)
        return
    if duration < SHORTEST_RECHECK:
        yield f".{word}", f"must be at least {format_duration(SHORTEST_RECHECK)}"


def _for_each_problems(given: object) -> Iterator[tuple[str, str]]:
    if isinstance(given, list) and len(given) == 1:
        given = given[0]
    if isinstance(given, str):
        return
    if not isinstance(given, dict) or len(given) != 1:
        yield ".forEach", 'has exactly one variable: {team: "${teams.data.names}"}, or the list for `item`'
        return
    ((variable, expression),) = given.items()
    if not isinstance(expression, str):
        yield f".forEach.{variable}", "must be an expression that makes a list"
    if not _IDENTIFIER.fullmatch(variable) or variable.lower() in _RESERVED - {"each", "item"}:
        yield f".forEach.{variable}", f"{variable[:80]!r} cannot be the name of a variable"
    elif variable in TYPE_NAMES:
        yield f".forEach.{variable}", f"{variable!r} {_A_TYPE}"


def body_problems(kind: NodeKind, body: object) -> Iterator[tuple[str, str]]:
    """Yield the problems of a body, each with the field below it: `(".metadata.name", "a template needs a name")`."""
    if isinstance(body, str):
        if kind not in ("template", "patch", "def"):
            yield "", f"a {kind} is an object"
        return
    if kind == "def":
        return
    if not isinstance(body, dict):
        yield "", "must be an object"
        return
    api_version = body.get("apiVersion")
    object_kind = body.get("kind")
    if not isinstance(api_version, str) or not _API_VERSION.fullmatch(api_version):
        yield ".apiVersion", "needs a literal version such as v1 or kardinal.io/v1alpha1"
    if not isinstance(object_kind, str) or not object_kind.isalnum():
        yield ".kind", "needs a literal kind"
    metadata = body.get("metadata", {})
    if not isinstance(metadata, dict):
        yield ".metadata", "must be an object"
        return
    yield from _problems_of_kind(kind, body, metadata)


def _problems_of_kind(kind: NodeKind, body: JsonObject, metadata: JsonObject) -> Iterator[tuple[str, str]]:
    match kind:
        case "template":
            yield from _name_and_mark_problems(kind, metadata)
        case "patch":
            if set(metadata) - {"name", "namespace", "labels", "annotations"}:
                yield ".metadata", "a patch sets labels and annotations there, and names its object; nothing else"
            yield from _name_and_mark_problems(kind, metadata)
        case "ref":
            if set(body) - {"apiVersion", "kind", "metadata"} or set(metadata) - {"name", "namespace"}:
                yield "", "a ref is apiVersion, kind, metadata.name and metadata.namespace, nothing else"
            if not isinstance(metadata.get("name"), str) or not metadata["name"]:
                yield ".metadata.name", "a ref needs a name"
        case "watch":
            yield from _watch_problems(body, metadata)


def _name_and_mark_problems(kind: NodeKind, metadata: JsonObject) -> Iterator[tuple[str, str]]:
    if not isinstance(metadata.get("name"), str) or not metadata["name"]:
        yield ".metadata.name", f"a {kind} needs a name"
    for field in ("labels", "annotations"):
        keys = metadata.get(field, {})
        if not isinstance(keys, dict):
            yield f".metadata.{field}", "must be an object"
        elif any(key.partition("/")[0].endswith(_INTERNAL) for key in keys):
            yield f".metadata.{field}", f"keys under {_INTERNAL} belong to the engine"


def _watch_problems(body: JsonObject, metadata: JsonObject) -> Iterator[tuple[str, str]]:
    if "name" in metadata:
        yield ".metadata.name", "a watch has no name: use ref for one object"
    if set(body) - {"apiVersion", "kind", "metadata", "selector"} or set(metadata) - {"name", "namespace", "selector"}:
        yield "", "a watch is apiVersion, kind, selector and metadata.namespace, nothing else"
    selectors = [part["selector"] for part in (body, metadata) if "selector" in part]
    if len(selectors) != 1 or not isinstance(selectors[0], dict):
        yield ".selector", "a watch needs one selector; {} selects everything"
