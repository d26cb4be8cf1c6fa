"""Workers merge and render in processes of their own, one after the other or side by side."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kardinal.catalog.engine import CatalogWorkers, WorkerEngine
from kardinal.catalog.errors import CatalogError
from kardinal.catalog.values import Layout, Merged, Node, RenderJob
from tests.catalog.compilations import jsonnet_input
from tests.catalog.conftest import StartEngine
from tests.catalog.hostile_worker import hostile_worker

IDENTITY = """
while True:
    request()
    answer({"value": os.getpid()})
"""
"""A worker that answers with the number of its process."""
NOTHING = Layout({}, {})


def classes(**files: str) -> Layout:
    """Return a layout with classes: `a__b` is the file a/b.yml."""
    return Layout(
        {}, {f"inventory/classes/{name.replace('__', '/')}.yml": text.encode() for name, text in files.items()}
    )


def component(trees: Path, **files: str) -> Layout:
    """Return a layout with the component `web`; `main_jsonnet` is the file main.jsonnet."""
    tree = trees / "web"
    tree.mkdir(parents=True)
    for name, text in files.items():
        (tree / name.replace("_", ".")).write_text(text)
    return Layout({"dependencies/web": tree}, {})


def instances(*names: str, file: str = "main.jsonnet") -> tuple[list[RenderJob], dict[str, Merged]]:
    """Return jobs and inventory for instances of the component `web`."""
    inventory = {}
    for name in names:
        compile_ = [jsonnet_input(file) | {"output_path": name}]
        kapitan = {"compile": compile_, "vars": {"target": name}}
        parameters: dict[str, Any] = {"_base_directory": "dependencies/web", "_instance": name, "kapitan": kapitan}
        inventory[name] = Merged(("web",), ("components.web",), parameters)
    return [RenderJob(instance=name, component="web") for name in names], inventory


async def test_nodes_are_merged(start_engine: StartEngine) -> None:
    layout = classes(a="parameters: {x: 1, y: '${own}'}\napplications: [web]")
    nodes = {name: Node(("a",), {"own": name}) for name in ("n1", "n2")}
    merged = await start_engine().merge(layout, nodes, tolerate_missing=False)
    assert {name: node.parameters["y"] for name, node in merged.items()} == {"n1": "n1", "n2": "n2"}
    assert merged["n1"].applications == ("web",)
    assert merged["n1"].classes == ("a",)


async def test_an_error_of_the_hierarchy_arrives_whole(start_engine: StartEngine) -> None:
    with pytest.raises(CatalogError) as failed:
        await start_engine().merge(
            classes(a="parameters: {x: '${no}'}"), {"n": Node(("a",), {})}, tolerate_missing=False
        )
    assert failed.value.kind == "invalid"
    assert str(failed.value.where) == "inventory/classes/a.yml, parameter x"
    assert str(failed.value).count("inventory/classes/a.yml") == 1
    assert "${no::DEFAULT}" in failed.value.remedy


async def test_classes_that_include_each_other_are_named_by_another_worker(start_engine: StartEngine) -> None:
    engine = start_engine()
    layout = classes(a="classes: [b]", b="classes: [a]")
    with pytest.raises(CatalogError, match="a → b → a") as failed:
        await engine.merge(layout, {"n": Node(("a",), {})}, tolerate_missing=False)
    assert failed.value.kind == "invalid"
    assert (await engine.merge(classes(c="{}"), {"n": Node(("c",), {})}, tolerate_missing=False))["n"].classes == ("c",)


async def test_origin_answers_with_classes_and_values(start_engine: StartEngine) -> None:
    layout = classes(a="parameters: {x: {y: 1}}", b="parameters: {x: {y: [2]}}")
    assert await start_engine().origin(layout, Node(("a", "b"), {}), "x.y") == [("a", 1), ("b", [2])]


async def test_a_file_is_evaluated_with_its_variables(start_engine: StartEngine) -> None:
    layout = Layout({}, {"a/jsonnetfile.jsonnet": b"{version: std.extVar('v'), list: [1, null]}"})
    value = await start_engine().evaluate(layout, "a/jsonnetfile.jsonnet", {"v": "1.2"})
    assert value == {"version": "1.2", "list": [1, None]}


async def test_instances_are_rendered_in_order(start_engine: StartEngine, tmp_path: Path) -> None:
    layout = component(tmp_path, main_jsonnet="{o: {name: std.extVar('target')}}")
    jobs, inventory = instances(*(f"web-{number}" for number in range(6)))
    rendered = await start_engine(jobs=3).render(layout, jobs, inventory)
    assert [made.instance for made in rendered] == [job.instance for job in jobs]
    assert all(list(made.files.values()) == [f"name: {made.instance}\n".encode()] for made in rendered)


async def test_the_first_of_several_failures_is_told(start_engine: StartEngine, tmp_path: Path) -> None:
    layout = component(tmp_path, main_jsonnet="{}", bad_jsonnet="error 'planted'")
    good, inventory = instances("a", "b")
    bad, failing = instances("c", "d", "e", file="bad.jsonnet")
    for _ in range(3):
        with pytest.raises(CatalogError, match="planted") as failed:
            await start_engine(jobs=2).render(layout, [*good, *bad], inventory | failing)
        assert failed.value.where.instance == "c"


async def test_a_warm_worker_is_used_again(start_engine: StartEngine) -> None:
    engine = start_engine(program=hostile_worker(IDENTITY))
    assert len({str(await engine.evaluate(NOTHING, "x", {})) for _ in range(3)}) == 1


async def test_a_worker_is_ended_before_that_of_another_namespace(start_engine: StartEngine, tmp_path: Path) -> None:
    workers = CatalogWorkers(jobs=2, program=hostile_worker(IDENTITY))
    try:
        one = await WorkerEngine(workers, tmp_path / "one").evaluate(NOTHING, "x", {})
        other = await WorkerEngine(workers, tmp_path / "other").evaluate(NOTHING, "x", {})
        assert isinstance(one, int)
        assert one != other
        with pytest.raises(ProcessLookupError):
            os.kill(one, 0)
    finally:
        await workers.stop()


async def test_closing_leaves_no_process_and_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    workers = CatalogWorkers(jobs=1, program=hostile_worker(IDENTITY))
    number = await WorkerEngine(workers, tmp_path).evaluate(NOTHING, "x", {})
    assert [path.name for path in tmp_path.glob("kardinal-*")] != []
    await workers.stop()
    assert [path.name for path in tmp_path.glob("kardinal-*")] == []
    assert isinstance(number, int)
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


async def test_a_cancelled_call_ends_its_worker(start_engine: StartEngine, tmp_path: Path) -> None:
    layout = component(
        tmp_path, main_jsonnet="local f(n) = if n == 0 then 0 else f(n - 1); [f(300) for i in std.range(0, 1000000)]"
    )
    engine = start_engine()
    jobs, inventory = instances("web")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(engine.render(layout, jobs, inventory), 2.0)
    assert await engine.evaluate(Layout({}, {"a.jsonnet": b"1"}), "a.jsonnet", {}) == 1


async def test_a_worker_ends_with_this_process(tmp_path: Path) -> None:
    program = f"""
import asyncio, os, pathlib
from kardinal.catalog.engine import CatalogWorkers, WorkerEngine
from kardinal.catalog.values import Layout, Node
async def main():
    engine = WorkerEngine(CatalogWorkers(jobs=1), pathlib.Path({str(tmp_path)!r}))
    layout = Layout({{}}, {{"inventory/classes/a.yml": b""}})
    await engine.merge(layout, {{"n": Node((), {{}})}}, tolerate_missing=False)
    (worker,) = engine._workers._all
    print(worker.process._process.pid, flush=True)
    os.kill(os.getpid(), 9)
asyncio.run(main())
"""
    ended = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", program], capture_output=True, text=True, env={"TMPDIR": str(tmp_path)}
    )
    worker = int(ended.stdout)
    async with asyncio.timeout(30):
        while Path(f"/proc/{worker}/exe").exists():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("links", "files"),
    [
        ({}, ["../escaped"]),
        ({}, ["/absolute"]),
        ({}, ["a//b"]),
        ({}, [""]),
        ({}, ["a", "a/b"]),
        ({"a": "web"}, ["a/b"]),
        ({"a": "web"}, ["a"]),
        ({"a": "web", "a/b": "web"}, []),
        ({"a": "../outside"}, []),
        ({"a": "web/link"}, []),
        ({"a": "web/up/outside/secret"}, []),
    ],
)
async def test_a_layout_stays_in_its_directory(
    start_engine: StartEngine, tmp_path: Path, links: Mapping[str, str], files: list[str]
) -> None:
    trees = tmp_path / "trees"
    (trees / "web").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("")
    (trees / "outside").mkdir()
    (trees / "outside/secret").write_text("")
    (trees / "web/link").symlink_to("/etc/hostname")
    (trees / "web/up").symlink_to("..")
    layout = Layout({path: trees / target for path, target in links.items()}, dict.fromkeys(files, b"x"))
    with pytest.raises(CatalogError) as failed:
        await start_engine(trees).evaluate(layout, "x.jsonnet", {})
    assert failed.value.kind == "refused"
    assert (
        list((trees / "web").iterdir()) == [trees / "web/link", trees / "web/up"] or len(os.listdir(trees / "web")) == 2
    )


async def test_a_link_to_nothing_is_told(start_engine: StartEngine, tmp_path: Path) -> None:
    layout = Layout({"inventory/classes/components/web.yml": tmp_path / "web/class/web.yml"}, {})
    with pytest.raises(CatalogError) as failed:
        await start_engine().evaluate(layout, "x.jsonnet", {})
    assert (failed.value.kind, failed.value.where.file) == ("invalid", "inventory/classes/components/web.yml")


async def test_without_the_extra_the_error_tells_how_to_install_it(
    start_engine: StartEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kardinal.catalog.engine.find_spec", lambda _: None)
    with pytest.raises(CatalogError) as failed:
        await start_engine().evaluate(NOTHING, "x.jsonnet", {})
    assert "pip install 'kardinal[catalog]'" in failed.value.remedy


def test_everything_but_workers_starts_without_the_extra() -> None:
    program = """
import importlib, pkgutil, sys
for name in ("reclass_rs", "_gojsonnet", "jinja2"):
    sys.modules[name] = None
for package in ("kardinal", "kardinal_agent", "kardinal_controller", "kardinal_supplychain"):
    module = importlib.import_module(package)
    for found in pkgutil.walk_packages(module.__path__, f"{package}."):
        if not found.name.startswith("kardinal.catalog.worker.") and not found.name.endswith("__main__"):
            importlib.import_module(found.name)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
