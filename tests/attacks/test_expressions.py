"""Expressions and Graphs that were written to take the event loop, the CPU or the memory of a control plane."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kardinal import cel
from kardinal.graph import GraphError, compile_graph
from kardinal.objects import CONFIG_MAP, GRAPH, JsonObject
from kardinal.promotion.api import Bundle
from kardinal.promotion.kinds import POLICY_GATE
from kardinal.promotion.policy.context import GateContext
from kardinal.promotion.policy.evaluate import evaluate
from kardinal.promotion.policy.transition import next_transition
from kardinal_controller.program import ControlPlane
from tests.bundles.scripted_agent import ScriptedAgent, agent, controller
from tests.cel.corpus import DEAR, data
from tests.graph.cluster import config
from tests.graph.program import condition, existing, graph, start_engine, states
from tests.policy.soaks import soak_since
from tests.support import objects
from tests.support.names import DEV, PROD, TEAM
from tests.support.world import World

__all__ = ["agent", "controller"]

NOW = datetime(2026, 3, 3, 14, 30, 15, tzinfo=UTC)

GENEROUS = 0.1
"""Seconds of CPU: five times what an expression may take of the event loop."""


class Callbacks:
    """The CPU time of every callback of the event loop."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    @property
    def worst(self) -> float:
        return max(self.seconds)

    def percentile(self, share: float) -> float:
        return sorted(self.seconds)[int(len(self.seconds) * share)]


@pytest.fixture
def callbacks(monkeypatch: pytest.MonkeyPatch) -> Callbacks:
    """Watch the event loop: the callback runs as always, with a look at the clock of its thread around it."""
    found = Callbacks()
    run = asyncio.events.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        begun = time.thread_time()
        run(handle)
        found.seconds.append(time.thread_time() - begun)

    monkeypatch.setattr(asyncio.events.Handle, "_run", timed)
    # A collection of what the tests before have left would be counted as the work of a callback.
    gc.collect()
    gc.freeze()
    return found


@pytest.fixture(scope="module")
def scope() -> dict[str, Any]:
    return data()


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Collect no garbage: in a worker with the objects of a thousand tests that takes longer than an expression may."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("name", DEAR)
def test_no_expression_takes_the_event_loop_or_the_memory(name: str, scope: dict[str, Any]) -> None:
    assert len(DEAR[name]) <= 4096
    program = cel.compile(DEAR[name])
    begun = time.thread_time()
    outcome = program.evaluate(scope, now=NOW)
    taken = time.thread_time() - begun
    tracemalloc.start()
    try:
        # Without the bound on CPU time: an expression takes several times as long while its memory is traced.
        again = program.evaluate(scope, now=NOW, budget=cel.Budget(replace(cel.STANDARD_LIMITS, cpu=None)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert outcome == again
    assert taken < GENEROUS
    assert peak < 64 << 20


async def test_a_gate_that_is_too_much_work_is_closed_with_the_reason_and_holds_up_no_other(
    world: World, controller: ControlPlane, agent: ScriptedAgent, callbacks: Callbacks
) -> None:
    letters = "'x'" + ".replace('x', 'xxxxxxxx')" * 6 + ".split('')"
    dear = " || ".join([f"'y' in {letters}"] * 10)
    assert len(dear) < 2048
    await world.apply(
        objects.pipeline("file:///repo", environments=[DEV, PROD]),
        objects.gate("dear", dear, applies_to=DEV),
        objects.gate("cheap", "schedule.hour >= 0", applies_to=DEV),
        objects.bundle("b"),
    )
    held = await world.wait_for(POLICY_GATE, f"b-{DEV}-dear", lambda gate: "reason" in gate.get("status", {}))
    assert held["status"]["ready"] is False
    assert "takes more than" in held["status"]["reason"]
    await world.wait_for(POLICY_GATE, f"b-{DEV}-cheap", lambda gate: gate.get("status", {}).get("ready") is True)
    assert callbacks.percentile(0.99) < 0.05
    assert callbacks.worst < 0.3


def gate_context(**labels: str) -> GateContext:
    bundle = Bundle.model_validate(objects.bundle("app-1", labels=labels))
    return GateContext(bundle, "prod", "auto", soak=soak_since(NOW - timedelta(minutes=12)))


def test_the_search_for_the_next_turn_costs_no_more_than_an_evaluation() -> None:
    numbers = ", ".join(str(number) for number in range(100, 900))
    expression = f"schedule.hour > 24 && bundle.upstreamSoakMinutes in [{numbers}] && schedule.isWeekend"
    context = gate_context()
    evaluate(expression, context, now=NOW)
    begun = time.thread_time()
    next_transition(expression, context, now=NOW)
    assert time.thread_time() - begun < GENEROUS


def test_the_search_for_a_moment_computes_dear_sides_of_comparisons_once() -> None:
    side = "duration(string(few.map(a, few.map(b, 1)).size()) + 's')"
    expression = " || ".join([f"now() - {side} > timestamp('2027-01-01T00:00:00Z')"] * 25)
    program = cel.compile(expression)
    begun = time.thread_time()
    for _ in range(10):
        program.next_flip({"few": list(range(50))}, now=NOW)
    assert time.thread_time() - begun < 10 * 0.03


def test_a_wrong_expression_is_not_parsed_again_for_every_answer() -> None:
    expression = "[" + "1," * 2000 + "1"
    context = gate_context()
    begun = time.thread_time()
    for _ in range(30):
        assert evaluate(expression, context, now=NOW).result == "error"
    assert time.thread_time() - begun < 1


def test_programs_are_kept_by_size_and_not_by_number() -> None:
    texts = [f'"{number:04}{"x" * 4000}" == a' for number in range(60)]
    first = cel.compile(texts[0])
    for text in texts:
        cel.compile(text)
    assert cel.compile(texts[0]) is not first


def dense(number: int) -> str:
    """Return an expression that is long to parse."""
    return "[" + "1," * 1990 + f"{number}] == []"


def wordy(number: int) -> str:
    """Return an expression that is long, and quick to parse."""
    return f'"{number:05}{"x" * 4000}" == "x"'


async def test_a_graph_of_too_many_expressions_is_refused_before_it_is_compiled(
    world: World, callbacks: Callbacks
) -> None:
    """Long ones that are not too many are compiled, and parsed elsewhere than on the event loop."""
    await start_engine(world)
    values = {f"k{number}": "${" + dense(number) + "}" for number in range(115)}
    await world.apply(graph(config("a", values)))
    status, reason, message = await condition(world, "Accepted")
    assert (status, reason) == ("False", "ExpressionError")
    assert "more than 262144" in message
    assert "split the Graph" in message
    await world.apply(graph(config("a", includeWhen=[dense(number) for number in range(1000, 1005)])))
    assert await states(world) == {"a": "Excluded"}
    assert callbacks.percentile(0.99) < 0.05
    assert callbacks.worst < 0.5


@pytest.mark.virtual_time("room is looked for once a minute")
async def test_a_namespace_has_room_for_so_many_expressions_only(world: World) -> None:
    await start_engine(world)
    for name in range(3):
        words = [wordy(100 * name + number) for number in range(50)]
        await world.apply(graph(config(f"a{name}", includeWhen=words), name=f"g{name}"))
        await world.settle()
    accepted = [await condition(world, "Accepted", f"g{name}") for name in range(3)]
    assert [status for status, _, _ in accepted] == ["True", "True", "False"]
    assert "delete Graphs" in accepted[2][2]
    await world.delete(GRAPH, "g0")
    await world.wait_for(GRAPH, "g2", lambda found: found["status"]["conditions"][0]["status"] == "True")


async def test_the_nodes_of_a_dear_graph_let_others_run_in_between(world: World, callbacks: Callbacks) -> None:
    await world.apply(existing("big", {"text": "x" * 4_000}))
    await start_engine(world)
    reading = {"id": "big", "ref": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big"}}}
    dear = "big.data.text.split('').map(c, [c, c]).size() == 0"
    await world.apply(graph(reading, *(config(f"n{number}", includeWhen=[dear]) for number in range(800))))
    found = await states(world)
    assert (found["big"], found["n0"], found["n799"]) == ("Ready", "Excluded", "Error")
    assert callbacks.percentile(0.99) < 0.05
    assert callbacks.worst < 0.5


async def test_an_expression_that_overran_stands_until_its_data_changes(world: World) -> None:
    await world.apply(existing("big", {"text": "x" * 50_000}))
    await start_engine(world)
    reading = {"id": "big", "ref": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big"}}}
    dear = "big.data.text.split('').all(c, c + c == 'xx' && c + c != 'yy' && [c, c] == [c, c])"
    await world.apply(graph(reading, config("a", {"x": f"${{string({dear})}}"})))
    assert await states(world) == {"big": "Ready", "a": "Error"}
    obj = await world.get(GRAPH, "g")
    assert "takes more than 100000 steps" in obj["status"]["nodes"][1]["message"]
    await world.client.patch(CONFIG_MAP, "big", TEAM, {"data": {"text": "xx"}})
    assert await states(world) == {"big": "Ready", "a": "Ready"}


def compiled_in(spec: JsonObject) -> float:
    begun = time.thread_time()
    with contextlib.suppress(GraphError):
        compile_graph(spec)
    return time.thread_time() - begun


def test_a_text_full_of_dollars_is_scanned_in_one_go() -> None:
    assert compiled_in({"nodes": [config("a", {"x": "$" * 60_000 + " ${1}"})]}) < 0.5


async def test_a_text_of_many_large_values_is_refused_before_it_is_put_together(world: World) -> None:
    await world.apply(existing("big", {"text": "x" * 500_000}))
    await start_engine(world)
    reading = {"id": "big", "ref": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big"}}}
    tracemalloc.start()
    try:
        await world.apply(graph(reading, config("a", {"x": "${big.data.text}" * 200})))
        assert await states(world) == {"big": "Ready", "a": "Error"}
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 << 20


async def test_an_object_of_many_large_values_is_refused_before_it_is_sent(world: World) -> None:
    await world.apply(existing("big", {"text": "x" * 500_000}))
    await start_engine(world)
    reading = {"id": "big", "ref": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big"}}}
    values = {f"k{number}": "${big.data.text}" for number in range(200)}
    await world.apply(graph(reading, config("a", values)))
    assert await states(world) == {"big": "Ready", "a": "Error"}
    obj = await world.get(GRAPH, "g")
    assert "take more than 4 MiB" in obj["status"]["nodes"][1]["message"]
