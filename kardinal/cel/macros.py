"""Compile macros over lists, maps and optionals to closures, from the closures of their parts.

A comprehension binds one variable, to each element of a list or key of a map, or two variables: index and element, or
key and value. The cost of its body for all elements is paid before the first one (see `weights`). `all` and `exists`
tolerate failures as `&&` and `||` do: an element that decides outweighs elements that fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kardinal.cel.collections import check_order
from kardinal.cel.errors import EvaluationError, Fault
from kardinal.cel.frames import Evaluate, Frame, not_boolean
from kardinal.cel.prices import ENTRY, ENTRY_MEMORY, pay_sort
from kardinal.cel.syntax import Comprehension
from kardinal.cel.values import NOTHING, Optional, type_name
from kardinal.cel.weights import FAILURE, ITEM, ITEM_MEMORY, weight

__all__ = ["comprehension"]

_Item = tuple[object, object]
_Verdict = tuple[_Item, bool]
_SINGLE = frozenset({"exists_one", "existsOne"})
_DECISIVE = {"all": False, "exists": True}
"""The truth of one element that decides the macro, and outweighs failures of other elements."""


def comprehension(node: Comprehension, operand: Evaluate, body: Evaluate, transform: Evaluate | None) -> Evaluate:
    """Return the closure of a macro; `operand`, `body` and `transform` are the closures of its parts."""
    if node.macro == "cel.bind":
        return _bound(node, operand, body)
    if node.macro in ("optMap", "optFlatMap"):
        return _optional(node, operand, body)
    loop = _Loop(node, body, transform)
    cost = ITEM + weight(node.body) + (weight(node.transform) if node.transform else 0)

    def evaluate(frame: Frame) -> object:
        container = operand(frame)
        if isinstance(container, list | dict):
            frame.budget.spend(cost * len(container), ITEM_MEMORY * len(container))
        items = list(_items(node, container))
        outer = frame.bound
        frame.bound = dict(outer)
        try:
            return loop.run(frame, items)
        finally:
            frame.bound = outer

    return evaluate


def _items(node: Comprehension, container: object) -> Iterator[_Item]:
    if isinstance(container, dict):
        yield from container.items() if node.second else ((key, None) for key in container)
    elif isinstance(container, list):
        yield from enumerate(container) if node.second else ((item, None) for item in container)
    else:
        kind = type_name(container)
        raise Fault("type", f"`{node.macro}` needs a list or a map, not {kind}", node.position)


class _Loop:
    """One comprehension over a list of items."""

    def __init__(self, node: Comprehension, body: Evaluate, transform: Evaluate | None) -> None:
        self._node = node
        self._body = body
        self._transform = transform
        self._runs: dict[str, Callable[[Frame, list[_Item]], object]] = {
            "map": self._map,
            "transformList": self._map,
            "transformMap": self._map_values,
            "transformMapEntry": self._map_entries,
            "sortBy": self._sort,
        }

    def run(self, frame: Frame, items: list[_Item]) -> object:
        return self._runs.get(self._node.macro, self._judge)(frame, items)

    def _bind(self, frame: Frame, item: _Item) -> None:
        frame.bound[self._node.variable] = item[0]
        if self._node.second is not None:
            frame.bound[self._node.second] = item[1]

    def _results(self, frame: Frame, items: list[_Item]) -> Iterator[tuple[_Item, object]]:
        """Yield each item that passes the filter, if there is a filter, with its result."""
        chosen = items
        compute = self._body
        if self._transform is not None:
            chosen = [item for item, truth in self._verdicts(frame, items) if truth]
            compute = self._transform
        for item in chosen:
            self._bind(frame, item)
            yield item, compute(frame)

    def _map(self, frame: Frame, items: list[_Item]) -> object:
        return [result for _, result in self._results(frame, items)]

    def _map_values(self, frame: Frame, items: list[_Item]) -> object:
        return {key: result for (key, _), result in self._results(frame, items)}

    def _map_entries(self, frame: Frame, items: list[_Item]) -> object:
        merged: dict[object, object] = {}
        position = self._node.position
        for _, result in self._results(frame, items):
            if not isinstance(result, dict):
                raise Fault("type", f"`{self._node.macro}` needs maps, not {type_name(result)}", position)
            frame.budget.spend(ENTRY * len(result), ENTRY_MEMORY * len(result))
            for key, value in result.items():
                if key in merged:
                    raise Fault("conversion", f"`{self._node.macro}` makes one key twice", position)
                merged[key] = value
        return merged

    def _sort(self, frame: Frame, items: list[_Item]) -> object:
        chosen = list[object]()
        keys = list[Any]()
        for item, key in self._results(frame, items):
            chosen.append(item[0])
            keys.append(key)
        pay_sort(frame.budget, keys)
        check_order(keys, "sortBy")
        return [chosen[index] for index in sorted(range(len(keys)), key=keys.__getitem__)]

    def _verdicts(self, frame: Frame, items: list[_Item]) -> list[_Verdict]:
        """Return each item with the truth of the body; for `all` and `exists`, those up to the one that decides.

        Where none decides, a failure of one of them is the result.
        """
        macro = self._node.macro
        position = self._node.position
        decisive = _DECISIVE.get(macro)
        seen: list[_Verdict] = []
        failure: EvaluationError | None = None
        for item in items:
            self._bind(frame, item)
            try:
                truth = self._body(frame)
                if type(truth) is not bool:
                    raise not_boolean(macro, truth, position)
            except EvaluationError as error:
                if decisive is None or (isinstance(error, Fault) and error.kind == "limit"):
                    raise
                frame.budget.spend(FAILURE)
                # A failure holds the frames that it came through: the first one is enough.
                failure = failure or error
                continue
            seen.append((item, truth))
            if truth is decisive:
                return seen
        if failure is not None:
            raise failure
        return seen

    def _judge(self, frame: Frame, items: list[_Item]) -> object:
        macro = self._node.macro
        seen = self._verdicts(frame, items)
        if macro == "filter":
            return [item[0] for item, truth in seen if truth]
        if macro in _SINGLE:
            return sum(truth for _, truth in seen) == 1
        decisive = _DECISIVE[macro]
        return decisive if any(truth is decisive for _, truth in seen) else not decisive


def _bound(node: Comprehension, operand: Evaluate, body: Evaluate) -> Evaluate:
    """Return the closure of `cel.bind`, which computes the value once, however often the body reads it."""
    variable = node.variable

    def evaluate(frame: Frame) -> object:
        value = operand(frame)
        outer = frame.bound
        frame.bound = {**outer, variable: value}
        try:
            return body(frame)
        finally:
            frame.bound = outer

    return evaluate


def _optional(node: Comprehension, operand: Evaluate, body: Evaluate) -> Evaluate:
    """Return the closure of `optMap` or `optFlatMap`, which evaluates the body on the value of the optional, if any."""
    macro = node.macro
    variable = node.variable
    position = node.position

    def evaluate(frame: Frame) -> object:
        container = operand(frame)
        if not isinstance(container, Optional):
            raise Fault("type", f"`{macro}` needs an optional, not {type_name(container)}", position)
        if not container.present:
            return NOTHING
        outer = frame.bound
        frame.bound = {**outer, variable: container.value}
        try:
            result = body(frame)
        finally:
            frame.bound = outer
        return Optional(result) if macro == "optMap" else result

    return evaluate
