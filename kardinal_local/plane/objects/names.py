"""Validate the names of objects, and generate names from a prefix.

Names end up in URLs, in DNS and in the names of files, so each kind has the strictest rule that its use needs.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from kardinal_local.plane.kinds import Kind
from kardinal_local.plane.naming import (
    label_problems,
    path_segment_problems,
    qualified_name_problems,
    subdomain_problems,
)

__all__ = ["STANDARD_FINALIZERS", "NameRule", "finalizer_problems", "generated_name", "name_rule"]

NameRule = Callable[[str], list[str]]

STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})

_NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_GENERATED_PREFIX = 58


def generated_name(prefix: str) -> str:
    """A name for `generateName`; uniqueness is the caller's to check."""
    suffix = "".join(random.SystemRandom().choices(_NAME_ALPHABET, k=5))
    return prefix[:_GENERATED_PREFIX] + suffix


def name_rule(kind: Kind) -> NameRule:
    """The problems of a name of this kind."""
    return _RULES.get((kind.group, kind.kind), subdomain_problems)


def finalizer_problems(name: str) -> list[str]:
    """What is wrong with a finalizer of a built-in kind."""
    problems = qualified_name_problems(name)
    if "/" not in name and name not in STANDARD_FINALIZERS:
        problems.append("name is neither a standard finalizer name nor is it fully qualified")
    return problems


_RBAC = "rbac.authorization.k8s.io"
_RULES: dict[tuple[str, str], NameRule] = {
    ("", "Namespace"): label_problems,
    ("", "Service"): label_problems,
    ("apps", "StatefulSet"): label_problems,
    ("", "Event"): path_segment_problems,
    ("events.k8s.io", "Event"): path_segment_problems,
    (_RBAC, "Role"): path_segment_problems,
    (_RBAC, "RoleBinding"): path_segment_problems,
    (_RBAC, "ClusterRole"): path_segment_problems,
    (_RBAC, "ClusterRoleBinding"): path_segment_problems,
}
