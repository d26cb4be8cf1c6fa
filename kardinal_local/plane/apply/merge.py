"""Merge an applied configuration into a live object.

A merge adds and replaces, never removes; removal is the business of `prune`. Elements of a keyed list keep their
neighbours, so that an element of another manager keeps its place.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

from kardinal_local.plane.apply.compare import same
from kardinal_local.plane.apply.elements import element
from kardinal_local.plane.apply.types import Form, Type
from kardinal_local.plane.documents import JsonObject

__all__ = ["merge"]


def merge(live: Any, applied: Any, declared: Type) -> Any:
    """The live value with the applied one laid over it, itself when that changes nothing.

    Elements that only the live list has keep their place.
    """
    if same(live, applied):
        return live
    form = declared.form(applied)
    if form is Form.MAP and not declared.atomic_map:
        return _merge_maps(live, applied, declared)
    if form is Form.LIST and not declared.atomic_list:
        return _merge_lists(live, applied, declared)
    return applied


def _merge_maps(live: Any, applied: Any, declared: Type) -> Any:
    if live.__class__ is not dict or not live:
        return applied
    # Null names the map without content: what is in it stays.
    changed: JsonObject = {}
    for key, item in (applied or {}).items():
        merged = merge(live[key], item, declared.child(key)) if key in live else item
        if key not in live or merged is not live[key]:
            changed[key] = merged
    return {**live, **changed} if changed else live


def _merge_lists(live: Any, applied: Any, declared: Type) -> Any:
    if live.__class__ is not list or not live:
        return applied
    if not applied:
        return live
    ours = [element(item, declared) for item in live]
    theirs = {element(item, declared): item for item in applied}
    times = Counter(ours)
    # Of elements that are there twice none is merged with: the applied one takes the place of all.
    mergeable = {step: item for step, item in zip(ours, live, strict=True) if times[step] == 1}
    waiting = deque(zip(ours, live, strict=True))
    shared = deque(step for step in theirs if step in times)
    result: list[Any] = []
    for step, item in theirs.items():
        while waiting and (not shared or waiting[0][0] != shared[0]):
            name, only_live = waiting.popleft()
            if name not in theirs:
                result.append(only_live)
        result.append(merge(mergeable[step], item, declared.elements) if step in mergeable else item)
        if shared and shared[0] == step:
            shared.popleft()
            if waiting:
                waiting.popleft()
    result += [item for step, item in waiting if step not in theirs]
    unchanged = len(result) == len(live) and all(one is other for one, other in zip(result, live, strict=True))
    return live if unchanged else result
