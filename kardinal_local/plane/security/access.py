"""Authorize requests by roles and the bindings that grant them.

Everything is refused that no rule allows. Bindings are kept here by whom they speak of, in step with every commit, and
roles as the rules they have, from when they are needed first; and as programs ask the same few questions over and over,
a decision is remembered until a role or binding changes. A remembered answer costs a microsecond, which is why every
request asks.

A binding whose role does not exist gives nothing, and says so in the refusal: the usual cause is a misspelt name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.security.attributes import Attributes, forbidden
from kardinal_local.plane.security.rules import Rule, parse_rules, quoted
from kardinal_local.plane.security.users import User, account_name
from kardinal_local.plane.storage import Change, Committed, Entry

__all__ = ["RBAC_GROUP", "Access", "Decision", "RoleNotFound", "told_together"]

RBAC_GROUP = "rbac.authorization.k8s.io"
_ROLES = frozenset({f"roles.{RBAC_GROUP}", f"clusterroles.{RBAC_GROUP}"})
_BINDINGS = {f"rolebindings.{RBAC_GROUP}": "RoleBinding", f"clusterrolebindings.{RBAC_GROUP}": "ClusterRoleBinding"}
_REMEMBERED = 4096

_Key = tuple[str, str]  # namespace, name; the namespace is empty for what belongs to the cluster
_Principal = tuple[str, str]  # "User" or "Group", name


class RoleNotFound(LookupError):
    """A binding speaks of a role that does not exist."""


@dataclass(frozen=True, slots=True)
class Decision:
    allowed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Subject:
    principal: _Principal
    told: str


@dataclass(frozen=True, slots=True)
class _Binding:
    told: str
    role: _Key
    subjects: tuple[_Subject, ...]


@dataclass(slots=True)
class _Answer:
    """What is remembered of a question: who allows it for every name, who for some, and why not for others."""

    everything: str | None = None
    names: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def about(self, name: str) -> Decision:
        source = self.names.get(name, self.everything) if self.names else self.everything
        if source is not None:
            return Decision(True, f"RBAC: allowed by {source}")
        return Decision(False, f"RBAC: {told_together(self.problems)}" if self.problems else "")


class Access:
    """Decides; follows the store."""

    def __init__(self, store: Committed) -> None:
        self._roles: dict[_Key, Entry] = {}
        self._rules: dict[_Key, tuple[Rule, ...]] = {}
        self._bindings: dict[_Key, _Binding] = {}
        self._given: dict[tuple[str, _Principal], set[str]] = {}
        self._remembered: dict[tuple[str, ...] | tuple[object, ...], _Answer] = {}
        for storage in (*_ROLES, *_BINDINGS):
            for entry in store.entries(storage):
                self._take(entry)
        store.listen(self._observe)

    def decide(self, user: User, asked: Attributes) -> Decision:
        if user.is_master:
            return Decision(True)
        key = (user.name, user.groups, asked.verb, asked.group, asked.full_resource, asked.namespace, asked.path)
        answer = self._remembered.get(key)
        if answer is None:
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.clear()
            answer = self._remembered[key] = self._answer(user, asked)
        return answer.about(asked.name)

    def require(self, user: User, asked: Attributes) -> None:
        """403 unless `user` may do what is asked."""
        decision = self.decide(user, asked)
        if not decision.allowed:
            raise forbidden(user, asked, reason=decision.reason)

    def rules_for(self, user: User, namespace: str) -> tuple[list[Rule], list[str]]:
        """Every rule that speaks of `user` there, and what stood in the way of finding more."""
        rules: list[Rule] = []
        problems: list[str] = []
        if user.is_master:
            rules += (Rule(("*",), ("*",), ("*",)), Rule(("*",), urls=("*",)))
        for binding, _ in self._bindings_of(user, namespace):
            try:
                rules += self._rules_of(binding.role)
            except RoleNotFound as error:
                problems.append(str(error))
        return rules, problems

    def rules_of(self, kind: str, name: str, *, namespace: str) -> tuple[Rule, ...]:
        """The rules of the role that a binding in `namespace` would refer to; `RoleNotFound` when there is none."""
        return self._rules_of(_role_key(kind, name, namespace=namespace))

    def _answer(self, user: User, asked: Attributes) -> _Answer:
        answer = _Answer()
        for binding, subject in self._bindings_of(user, asked.namespace):
            source = f"{binding.told} to {subject.told}"
            try:
                rules = self._rules_of(binding.role)
            except RoleNotFound as error:
                answer.problems.append(str(error))
                continue
            for rule in rules:
                if asked.path:
                    matches = rule.allows_path(asked.verb, asked.path)
                else:
                    matches = rule.allows(asked.verb, group=asked.group, resource=asked.full_resource)
                if matches and not rule.names:
                    answer.everything = source
                    return answer
                if matches:
                    for name in rule.names:
                        answer.names.setdefault(name, source)
        return answer

    def _bindings_of(self, user: User, namespace: str) -> Iterator[tuple[_Binding, _Subject]]:
        """Bindings of the cluster, then those of the namespace, with the subject that `user` is."""
        principals = [("User", user.name), *(("Group", group) for group in user.groups)]
        for space in ("", namespace) if namespace else ("",):
            names = set().union(*(self._given.get((space, principal), ()) for principal in principals))
            for name in sorted(names):
                binding = self._bindings[space, name]
                yield binding, next(subject for subject in binding.subjects if subject.principal in principals)

    def _rules_of(self, role: _Key) -> tuple[Rule, ...]:
        if (rules := self._rules.get(role)) is not None:
            return rules
        if (entry := self._roles.get(role)) is None:
            kind = "role" if role[0] else "clusterrole"
            raise RoleNotFound(f"{kind}.{RBAC_GROUP} {quoted(role[1])} not found")
        rules = self._rules[role] = parse_rules(entry.decode())
        return rules

    def _observe(self, change: Change) -> None:
        storage = change.entry.resource
        if storage in _ROLES or storage in _BINDINGS:
            self._remembered.clear()
            self._drop(change.entry)
            if change.type != "DELETED":
                self._take(change.entry)

    def _drop(self, entry: Entry) -> None:
        key = (entry.namespace, entry.name)
        if entry.resource in _ROLES:
            self._roles.pop(key, None)
            self._rules.pop(key, None)
            return
        if (before := self._bindings.pop(key, None)) is not None:
            for subject in before.subjects:
                self._given[key[0], subject.principal].discard(key[1])

    def _take(self, entry: Entry) -> None:
        key = (entry.namespace, entry.name)
        if entry.resource in _ROLES:
            self._roles[key] = entry
            return
        binding = self._bindings[key] = _parse_binding(entry.decode(), kind=_BINDINGS[entry.resource])
        for subject in binding.subjects:
            self._given.setdefault((key[0], subject.principal), set()).add(key[1])


def told_together(problems: list[str]) -> str:
    """Several errors as one, in the real server's words."""
    return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"


def _parse_binding(document: JsonObject, *, kind: str) -> _Binding:
    metadata, reference = document["metadata"], document["roleRef"]
    namespace = metadata.get("namespace", "")
    name = f"{metadata['name']}/{namespace}" if namespace else metadata["name"]
    subjects = (_parse_subject(subject, namespace=namespace) for subject in document.get("subjects") or ())
    return _Binding(
        told=f"{kind} {quoted(name)} of {reference['kind']} {quoted(reference['name'])}",
        role=_role_key(reference["kind"], reference["name"], namespace=namespace),
        subjects=tuple(subjects),
    )


def _parse_subject(subject: JsonObject, *, namespace: str) -> _Subject:
    kind, name = subject["kind"], subject["name"]
    if kind != "ServiceAccount":
        return _Subject((kind, name), f"{kind} {quoted(name)}")
    home = subject.get("namespace") or namespace
    return _Subject(("User", account_name(home, name)), f"{kind} {quoted(f'{name}/{home}')}")


def _role_key(kind: str, name: str, *, namespace: str) -> _Key:
    return (namespace if kind == "Role" else "", name)
