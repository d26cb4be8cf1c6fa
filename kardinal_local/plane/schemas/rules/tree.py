"""Evaluate the CEL rules of a schema (`x-kubernetes-validations`) on an object.

Rules hang anywhere in a schema; only the paths that lead to one are compiled, so an object without rules costs nothing
and one with rules costs its rules. On an update each value is paired with its old value: fields by name, elements of a
keyed list by key, elements of other lists not at all. A rule that fails on a value the update leaves alone warns
instead of refusing, so a CRD may gain a rule without locking out writes to older objects. A value that satisfied the
rules of its node once is not asked the same again.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from kardinal import cel
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.schemas.causes import MapKey, Path
from kardinal_local.plane.schemas.correlation import ABSENT, Correlation, correlation_of
from kardinal_local.plane.schemas.keywords import VALIDATIONS
from kardinal_local.plane.schemas.rules.declarations import View, view
from kardinal_local.plane.schemas.rules.rule import Rule, compile_rule

__all__ = ["Judgement", "Rules", "compile_rules"]

_REMEMBERED: Final = 256


@dataclass(slots=True)
class Judgement:
    """What the rules say against an object, and what they would say if the update had touched it."""

    causes: list[Cause] = field(default_factory=list)
    forgiven: list[Cause] = field(default_factory=list)


class _Passed:
    """Which values satisfied the rules of a node; the latest few hundred."""

    def __init__(self) -> None:
        self._digests: OrderedDict[bytes, None] = OrderedDict()

    def digest(self, value: Any) -> bytes:
        return hashlib.blake2b(orjson.dumps(value, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()

    def knows(self, digest: bytes) -> bool:
        if digest not in self._digests:
            return False
        self._digests.move_to_end(digest)
        return True

    def remember(self, digest: bytes) -> None:
        self._digests[digest] = None
        if len(self._digests) > _REMEMBERED:
            self._digests.popitem(last=False)


class _Past:
    """The nearest value with a known old self, and whether the update left it alone."""

    def __init__(self, new: Any, old: Any, correlation: Correlation | None) -> None:
        self._new = new
        self._old = old
        self._correlation = correlation
        self._same: bool | None = None

    @property
    def same(self) -> bool:
        if self._same is None:
            self._same = self._correlation is not None and self._correlation.equal(self._new, self._old)
        return self._same

    def of(self, new: Any, old: Any, correlation: Correlation | None) -> _Past:
        """The past of a part; that of the whole where the part has none."""
        return self if old is ABSENT or correlation is None else _Past(new, old, correlation)


@dataclass(frozen=True, slots=True)
class _Node:
    """A schema node with rules, or on the way to some."""

    rules: tuple[Rule, ...]
    fields: Mapping[str, _Node]
    additional: _Node | None
    items: _Node | None
    view: View | None
    correlation: Correlation
    passed: _Passed

    def judge(self, value: Any, old: Any, path: Path, past: _Past | None, found: Judgement) -> None:
        if value is None:
            return
        if self.rules:
            self._ask(value, old, path, past, found)
        if value.__class__ is dict:
            self._judge_fields(value, old, path, past, found)
        elif value.__class__ is list and self.items is not None:
            match = self.correlation.matcher(old)
            for index, item in enumerate(value):
                before = ABSENT if match is None else match(item)
                inner = past and past.of(item, before, self.correlation.items)
                self.items.judge(item, before, (path, index), inner, found)

    def _judge_fields(self, value: JsonObject, old: Any, path: Path, past: _Past | None, found: Judgement) -> None:
        before = old if old.__class__ is dict else {}
        for key, item in value.items():
            node = self.fields.get(key, self.additional)
            if node is None:
                continue
            step = key if key in self.fields else MapKey(key)
            inner = past and past.of(item, before.get(key, ABSENT), self.correlation.of_field(key))
            node.judge(item, before.get(key, ABSENT), (path, step), inner, found)

    def _ask(self, value: Any, old: Any, path: Path, past: _Past | None, found: Judgement) -> None:
        seen = value if self.view is None else self.view(value)
        digest = self.passed.digest(value)
        known = self.passed.knows(digest)
        satisfied = True
        for rule in self.rules:
            scope = self._scope(rule, seen, old)
            if scope is None or (known and not rule.transition):
                continue
            cause = rule.judge(value, scope, path)
            if cause is None:
                continue
            satisfied = satisfied and rule.transition
            forgiven = not rule.transition and past is not None and past.same
            (found.forgiven if forgiven else found.causes).append(cause)
        if satisfied and not known:
            self.passed.remember(digest)

    def _scope(self, rule: Rule, seen: Any, old: Any) -> dict[str, Any] | None:
        """What a rule sees; None when it rests for want of an old value."""
        if not rule.transition:
            return {"self": seen}
        known = old is not ABSENT and old is not None
        before = (old if self.view is None else self.view(old)) if known else None
        if rule.optional_old:
            return {"self": seen, "oldSelf": cel.Optional(before, present=known)}
        return {"self": seen, "oldSelf": before} if known else None


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules of one kind; false when there are none."""

    root: _Node | None

    def __bool__(self) -> bool:
        return self.root is not None

    def judge(self, obj: JsonObject, *, old: JsonObject | None) -> Judgement:
        """What the rules say. The schema has been checked before: rules rely on its types."""
        found = Judgement()
        if self.root is not None:
            past = None if old is None else _Past(obj, old, self.root.correlation)
            self.root.judge(obj, ABSENT if old is None else old, None, past, found)
        return found


def compile_rules(source: JsonObject) -> Rules:
    """The rules of a schema that has been found good."""
    return Rules(_compile(source, correlation_of(source)))


def _compile(schema: JsonObject, correlation: Correlation) -> _Node | None:
    """The node of a schema; None when there is no rule in it or below."""
    rules = [compile_rule(rule, schema=schema) for rule in schema.get(VALIDATIONS) or ()]
    fields = {
        name: node
        for name, child in (schema.get("properties") or {}).items()
        if (node := _compile(child, correlation.fields[name])) is not None
    }
    extra, items = schema.get("additionalProperties"), schema.get("items")
    additional = _compile(extra, correlation.additional) if isinstance(extra, dict) and correlation.additional else None
    inner = _compile(items, correlation.items) if isinstance(items, dict) and correlation.items else None
    if not rules and not fields and additional is None and inner is None:
        return None
    return _Node(
        rules=tuple(rules),
        fields=fields,
        additional=additional,
        items=inner,
        view=view(schema) if rules else None,
        correlation=correlation,
        passed=_Passed(),
    )
