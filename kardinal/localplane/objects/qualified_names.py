"""What may be the key or the value of a label: the rules of a selector, in the words of the real server."""

from __future__ import annotations

import re

__all__ = ["key_problem", "value_problem"]

_LONGEST = 63
_LONGEST_PREFIX = 253
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_HELP = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_SUBDOMAIN_HELP = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_VALUE_HELP = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def key_problem(key: str) -> str:
    """Everything that is wrong with the key of a label."""
    *prefixes, name = key.split("/")
    if len(prefixes) > 1:
        return (
            f"a valid label key {_NAME_HELP} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )
    found = [f"prefix part {problem}" for prefix in prefixes for problem in _subdomain_problems(prefix)]
    if not name:
        found.append("name part must be non-empty")
    elif len(name.encode()) > _LONGEST:
        found.append(f"name part must be no more than {_LONGEST} bytes")
    if not _NAME.fullmatch(name):
        found.append(f"name part {_NAME_HELP}")
    return "; ".join(found)


def value_problem(value: str) -> str:
    """Everything that is wrong with the value of a label."""
    found = [f"must be no more than {_LONGEST} bytes"] if len(value.encode()) > _LONGEST else []
    if value and not _NAME.fullmatch(value):
        found.append(_VALUE_HELP)
    return "; ".join(found)


def _subdomain_problems(prefix: str) -> list[str]:
    if not prefix:
        return ["must be non-empty"]
    found = [f"must be no more than {_LONGEST_PREFIX} bytes"] if len(prefix.encode()) > _LONGEST_PREFIX else []
    return found if _SUBDOMAIN.fullmatch(prefix) else [*found, _SUBDOMAIN_HELP]
