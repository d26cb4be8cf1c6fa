"""Validate the syntax of names: path segments, DNS names, keys and values of labels.

Labels, annotations and finalizers have qualified names, `example.com/name`. Every problem is a sentence of its own,
because the real server reports all of them. Knows no kind.
"""

from __future__ import annotations

import re

__all__ = [
    "label_problems",
    "label_value_problems",
    "path_segment_problems",
    "qualified_name_problems",
    "subdomain_problems",
]

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
        problems += [f"prefix part {problem}" for problem in subdomain_problems(prefix, unit="bytes")]
    local = rest if slash else prefix
    if not local:
        problems.append("name part must be non-empty")
    elif len(local.encode()) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not _QUALIFIED.fullmatch(local):
        problems.append(f"name part {_QUALIFIED_HELP}")
    return problems


def label_value_problems(value: str) -> list[str]:
    problems = ["must be no more than 63 bytes"] if len(value.encode()) > 63 else []
    return problems if _LABEL_VALUE.fullmatch(value) else [*problems, _LABEL_VALUE_HELP]


def subdomain_problems(name: str, *, unit: str = "characters") -> list[str]:
    problems = [f"must be no more than 253 {unit}"] if len(name) > 253 else []
    return problems if _SUBDOMAIN.fullmatch(name) else [*problems, _SUBDOMAIN_HELP]


def label_problems(name: str) -> list[str]:
    problems = ["must be no more than 63 characters"] if len(name) > 63 else []
    return problems if _LABEL.fullmatch(name) else [*problems, _LABEL_HELP]


def path_segment_problems(name: str) -> list[str]:
    if name in {".", ".."}:
        return [f"may not be '{name}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in name]
