"""What names may look like, and names made from a prefix.

Names end up in URLs, in DNS and in the names of files, so each kind has the strictest rule that its use needs; labels,
annotations and finalizers have qualified names, `example.com/name`. Every problem is a sentence of its own, because the
real server reports all of them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from kardinal.localplane.kinds import Kind

__all__ = [
    "STANDARD_FINALIZERS",
    "NameRule",
    "finalizer_problems",
    "generated_name",
    "label_value_problems",
    "name_rule",
    "qualified_name_problems",
]

NameRule = Callable[[str], list[str]]

STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})

_NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_GENERATED_PREFIX = 58
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")

_SUBDOMAIN_HELP = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_HELP = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_QUALIFIED_HELP = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_VALUE_HELP = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def generated_name(prefix: str) -> str:
    """A name for `generateName`; uniqueness is the caller's to check."""
    suffix = "".join(random.SystemRandom().choices(_NAME_ALPHABET, k=5))
    return prefix[:_GENERATED_PREFIX] + suffix


def name_rule(kind: Kind) -> NameRule:
    """The problems of a name of this kind."""
    return _RULES.get((kind.group, kind.kind), _subdomain_problems)


def qualified_name_problems(name: str) -> list[str]:
    """What is wrong with the key of a label or the name of a finalizer."""
    prefix, slash, rest = name.partition("/")
    if "/" in rest:
        return [
            f"a valid label key {_QUALIFIED_HELP} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        ]
    problems = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {problem}" for problem in _subdomain_problems(prefix, unit="bytes")]
    local = rest if slash else prefix
    if not local:
        problems.append("name part must be non-empty")
    elif len(local.encode()) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not _QUALIFIED.fullmatch(local):
        problems.append(f"name part {_QUALIFIED_HELP}")
    return problems


def finalizer_problems(name: str) -> list[str]:
    """What is wrong with a finalizer of a built-in kind."""
    problems = qualified_name_problems(name)
    if "/" not in name and name not in STANDARD_FINALIZERS:
        problems.append("name is neither a standard finalizer name nor is it fully qualified")
    return problems


def label_value_problems(value: str) -> list[str]:
    problems = ["must be no more than 63 bytes"] if len(value.encode()) > 63 else []
    return problems if _LABEL_VALUE.fullmatch(value) else [*problems, _LABEL_VALUE_HELP]


def _subdomain_problems(name: str, *, unit: str = "characters") -> list[str]:
    problems = [f"must be no more than 253 {unit}"] if len(name) > 253 else []
    return problems if _SUBDOMAIN.fullmatch(name) else [*problems, _SUBDOMAIN_HELP]


def _label_problems(name: str) -> list[str]:
    problems = ["must be no more than 63 characters"] if len(name) > 63 else []
    return problems if _LABEL.fullmatch(name) else [*problems, _LABEL_HELP]


def _path_segment_problems(name: str) -> list[str]:
    if name in {".", ".."}:
        return [f"may not be '{name}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in name]


_RBAC = "rbac.authorization.k8s.io"
_RULES: dict[tuple[str, str], NameRule] = {
    ("", "Namespace"): _label_problems,
    ("", "Service"): _label_problems,
    ("apps", "StatefulSet"): _label_problems,
    ("", "Event"): _path_segment_problems,
    ("events.k8s.io", "Event"): _path_segment_problems,
    (_RBAC, "Role"): _path_segment_problems,
    (_RBAC, "RoleBinding"): _path_segment_problems,
    (_RBAC, "ClusterRole"): _path_segment_problems,
    (_RBAC, "ClusterRoleBinding"): _path_segment_problems,
}
