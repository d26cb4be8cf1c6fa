"""Compile Graphs without holding up the event loop, within what a Graph and a namespace may have of expressions.

The expressions are prepared first, in slices or in another process. What is left, the tree of the nodes and their
order, is done here for a small Graph and in a thread for a large one.
"""

from __future__ import annotations

import asyncio
from typing import Final

import orjson

from kardinal.graph.compile import CompiledGraph, compile_graph
from kardinal.graph.errors import GraphError
from kardinal.graph.texts import NamespaceTexts, check_size, texts
from kardinal.objects import JsonObject, Key
from kardinal_controller.expressions import ExpressionCompiler

__all__ = ["GraphCompiler"]

_SMALL: Final = 32 << 10
"""Bytes of a spec that is compiled on the event loop, in 10 ms."""


class GraphCompiler:
    """Compiles Graphs, and knows the expressions of each."""

    def __init__(self, expressions: ExpressionCompiler) -> None:
        self._expressions = expressions
        self._texts: dict[str, NamespaceTexts] = {}

    async def compile(self, key: Key, spec: JsonObject, *, known: bool) -> CompiledGraph | GraphError:
        """Return the graph of `spec`, or what is wrong with it.

        `known`: this spec was accepted before, so that a restart refuses no Graph that other Graphs were let in beside.
        """
        small = len(orjson.dumps(spec)) <= _SMALL
        try:
            found = texts(spec) if small else await asyncio.to_thread(texts, spec)
            check_size(found)
            beside = self._texts.setdefault(key.namespace, NamespaceTexts())
            if not known:
                beside.check(key.name, found)
            beside.put(key.name, found)
            programs = await self._expressions.prepare(sorted(found))
            return compile_graph(spec, programs) if small else await asyncio.to_thread(compile_graph, spec, programs)
        except GraphError as error:
            return error

    def forget(self, key: Key) -> None:
        """Forget the expressions of a Graph that is gone."""
        if (beside := self._texts.get(key.namespace)) is None:
            return
        beside.remove(key.name)
        if not beside:
            del self._texts[key.namespace]
