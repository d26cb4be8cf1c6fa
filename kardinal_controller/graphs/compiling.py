"""Compile Graphs without holding up the event loop, within the limits on expressions of a Graph and a namespace.

The expressions are prepared first, in slices or in another process. The rest of the work, the tree of the nodes and
their order, is done on the event loop for a small Graph and in a thread for a large one.
"""

from __future__ import annotations

import asyncio
from typing import Final

import orjson

from kardinal.graph.compile import CompiledGraph, compile_graph
from kardinal.graph.errors import GraphError
from kardinal.graph.texts import NamespaceTexts, check_size, texts
from kardinal.objects import JsonObject, Key
from kardinal.runtime import KeyMemory
from kardinal_controller.expressions import ExpressionCompiler
from kardinal_controller.graphs.metrics import GraphMetrics

__all__ = ["GraphCompiler"]

_SMALL: Final = 32 << 10
"""The most bytes of a spec that is compiled on the event loop, in 10 ms; a larger one is compiled on a thread."""


class GraphCompiler:
    """Compiles Graphs, and counts the expressions of each Graph of a namespace."""

    def __init__(self, expressions: ExpressionCompiler, memory: KeyMemory, metrics: GraphMetrics) -> None:
        self._expressions = expressions
        self._metrics = metrics
        self._texts: dict[str, NamespaceTexts] = {}
        memory.on_drop(self._remove_texts)

    async def compile(self, key: Key, spec: JsonObject, *, known: bool) -> CompiledGraph | GraphError:
        """Return the graph of `spec`, or its errors.

        `known`: this spec was accepted before. Then the limit of the namespace is not checked, so that no Graph is
        refused after a restart because of Graphs that were accepted later.
        """
        with self._metrics.compile_seconds.time():
            return await self._compile(key, spec, known=known)

    async def _compile(self, key: Key, spec: JsonObject, *, known: bool) -> CompiledGraph | GraphError:
        small = len(orjson.dumps(spec)) <= _SMALL
        try:
            found = texts(spec) if small else await asyncio.to_thread(texts, spec)
            check_size(found)
            beside = self._texts.setdefault(key.namespace, NamespaceTexts())
            if not known:
                beside.check(key.name, found)
            beside.put(key.name, found)
            programs = await self._expressions.prepare(sorted(found))
            compiled = (
                compile_graph(spec, programs) if small else await asyncio.to_thread(compile_graph, spec, programs)
            )
        except GraphError as error:
            self._metrics.compiles.labels("refused").inc()
            return error
        self._metrics.compiles.labels("accepted").inc()
        return compiled

    def _remove_texts(self, key: Key) -> None:
        """Forget the expressions of a Graph that is gone."""
        if (beside := self._texts.get(key.namespace)) is None:
            return
        beside.remove(key.name)
        if not beside:
            del self._texts[key.namespace]
