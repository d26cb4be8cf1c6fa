"""Validate names in a CRD, in the words of Kubernetes."""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "label_1035_problems",
    "label_1123_problems",
    "label_value_problems",
    "qualified_name_problems",
    "subdomain_problems",
]

_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_1123: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL_1123}(\.{_LABEL_1123})*"
_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"


def label_1035_problems(text: str) -> list[str]:
    """Why a text is no DNS label that starts with a letter."""
    words = (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
        f"character, and end with an alphanumeric character {_examples(_LABEL_1035, 'my-name', 'abc-123')}"
    )
    return _problems(text, _LABEL_1035, limit=63, words=words)


def label_1123_problems(text: str) -> list[str]:
    """Why a text is no DNS label."""
    words = (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
        f"with an alphanumeric character {_examples(_LABEL_1123, 'my-name', '123-abc')}"
    )
    return _problems(text, _LABEL_1123, limit=63, words=words)


def subdomain_problems(text: str) -> list[str]:
    """Why a text is no DNS subdomain."""
    words = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
        f"and end with an alphanumeric character {_examples(_SUBDOMAIN, 'example.com')}"
    )
    return _problems(text, _SUBDOMAIN, limit=253, words=words)


def label_value_problems(text: str) -> list[str]:
    """Why a text is no value of a label."""
    pattern = f"({_NAME})?"
    words = (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
        f"and end with an alphanumeric character {_examples(pattern, 'MyValue', 'my_value', '12345')}"
    )
    return _problems(text, pattern, limit=63, words=words)


def qualified_name_problems(text: str) -> list[str]:
    """Why a text is no `prefix/name`, the form of label keys and finalizers."""
    prefix, slash, name = text.rpartition("/")
    shape = "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    examples = _examples(_NAME, "MyName", "my.name", "123-abc")
    if prefix.count("/"):
        return [
            f"a qualified name must consist of {shape} {examples} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        ]
    problems = ["prefix part must be non-empty"] if slash and not prefix else []
    if prefix:
        problems += [f"prefix part {problem}" for problem in subdomain_problems(prefix)]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not re.fullmatch(_NAME, name):
        problems.append(f"name part must consist of {shape} {examples}")
    return problems


def _examples(pattern: str, *examples: str) -> str:
    given = ",  or ".join(f"'{example}'" for example in examples)
    return f"(e.g. {given}, regex used for validation is '{pattern}')"


def _problems(text: str, pattern: str, *, limit: int, words: str) -> list[str]:
    problems = [] if len(text) <= limit else [f"must be no more than {limit} bytes"]
    return problems if re.fullmatch(pattern, text) else [*problems, words]
