"""`kardinal local`: the plane alone, its options, and taking everything along."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import textwrap
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from kardinal.promotion.kinds import BUNDLE
from tests.local.plane.wire import (
    CONFIG_MAPS,
    DEFINITIONS,
    WIDGETS,
    Http,
    config_map,
    session_for,
    widget,
    widget_definition,
)
from tests.support.commands import KARDINAL
from tests.support.kubectl import Kubectl, kubectl_versions
from tests.support.objects import bundle

CRDS = Path(__file__).parents[3] / "crds"
CONFUSABLE = ["1e10", "0x1f", "yes", "y", "null", "1_000", "007", "~", "2026-01-02", "- a", "a: b", " ", "two\nlines\n"]
pytestmark = [pytest.mark.local_only("the commands that run a plane"), pytest.mark.usefixtures("commands")]


@asynccontextmanager
async def _up(directory: Path, *options: str) -> AsyncIterator[Path]:
    """Yield a plane that `kardinal local up --only plane` runs; its kubeconfig."""
    command: tuple[str | Path, ...] = (
        KARDINAL,
        "local",
        "up",
        "--only",
        "plane",
        "--port",
        "0",
        "--dir",
        directory,
        *options,
    )
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        while (line := await process.stdout.readline()) and not line.startswith(b"ready"):
            pass
        assert line, "it has ended"
        yield directory / "kubeconfig"
    finally:
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0


async def _export(directory: Path) -> tuple[str, str]:
    process = await asyncio.create_subprocess_exec(
        KARDINAL,
        "local",
        "export",
        "--dir",
        directory,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "HOME": str(directory)},
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err
    return out.decode(), err.decode()


async def test_the_plane_alone_serves_no_kind_of_kardinal_and_takes_its_options(tmp_path: Path) -> None:
    async with _up(tmp_path / "plane", "--durable", "--chaos", "7") as kubeconfig, session_for(kubeconfig) as session:
        http = Http(session)
        assert (await http.get(DEFINITIONS)).body["items"] == []
        # The administrator is spared by chaos.
        for number in range(20):
            assert (await http.post(CONFIG_MAPS, config_map(f"m{number}"))).status == 201


@pytest.mark.parametrize("kubectl", list(kubectl_versions())[-1:] or ["none found"], indirect=True)
async def test_kubectl_applies_an_export_to_a_fresh_plane(tmp_path: Path, kubectl: Callable[[Path], Kubectl]) -> None:
    texts = {f"key-{number}": text for number, text in enumerate(CONFUSABLE)}
    async with _up(tmp_path / "old") as kubeconfig, session_for(kubeconfig) as session:
        http = Http(session)
        await http.define(widget_definition())
        await http.post("/api/v1/namespaces", {"metadata": {"name": "mine", "labels": {"team": "a"}}})
        owner = await http.post(CONFIG_MAPS, config_map("texts", labels={"hash": "1e10"}, **texts))
        await http.post("/api/v1/namespaces/mine/secrets", {"metadata": {"name": "s"}, "stringData": {"key": "word"}})
        await http.post(WIDGETS, widget("w", size=4))
        await http.merge(f"{WIDGETS}/w/status", {"status": {"phase": "Ready"}})
        await http.post(CONFIG_MAPS, _owned("controlled", owner.body, controller=True))
        await http.post(CONFIG_MAPS, _owned("referring", owner.body))
        stream, told = await _export(tmp_path / "old")
        before = await _content(http)
    assert "1 that a controller makes again" in told
    (tmp_path / "all.yaml").write_text(stream)
    async with _up(tmp_path / "new") as kubeconfig, session_for(kubeconfig) as session:
        apply = kubectl(kubeconfig)
        # Its kinds are not served when kubectl looks for them the first time.
        first = await apply.attempt("apply", "-f", str(tmp_path / "all.yaml"))
        assert "ensure CRDs are installed first" in first.err
        await apply("apply", "-f", str(tmp_path / "all.yaml"))
        after = await _content(Http(session))
    del before["default/controlled"]
    assert after == before


async def test_an_export_names_nothing_that_only_its_server_could_say(tmp_path: Path) -> None:
    async with _up(tmp_path) as kubeconfig, session_for(kubeconfig) as session:
        http = Http(session)
        await http.define(widget_definition())
        await http.post(WIDGETS, widget("w", size=4))
        stream, _ = await _export(tmp_path)
    documents = list(yaml.load_all(stream, yaml.CSafeLoader))
    assert [document["kind"] for document in documents] == ["CustomResourceDefinition", "Widget"]
    assert all("status" not in document for document in documents)
    names = {field for document in documents for field in document["metadata"]}
    assert names == {"name", "namespace"}


async def test_the_record_of_a_bundle_is_exported_as_comments_whatever_is_in_it(tmp_path: Path) -> None:
    hostile = "\n---\nkind: Secret\r---\u2028---\x85kind: Secret"
    entry = {"state": "Verified", "message": hostile, "commit": "abc", "evidence": {"approvedBy": ["alice"]}}
    status = {"phase": "Verified", "graphRef": "release", "environments": {"prod": entry}}
    bundles = BUNDLE.path(namespace="default")
    definition = yaml.safe_load((CRDS / "kardinal.io_bundles.yaml").read_text())
    async with _up(tmp_path) as kubeconfig, session_for(kubeconfig) as session:
        http = Http(session)
        await http.define(definition)
        assert (await http.post(bundles, bundle("release", namespace="default"))).status == 201
        assert (await http.merge(f"{bundles}/release/status", {"status": status})).status == 200
        stream, told = await _export(tmp_path)
    assert "left out 1 Bundles that have ended" in told
    assert {each["kind"] for each in yaml.load_all(stream, yaml.CSafeLoader)} == {"CustomResourceDefinition"}
    comments = [line[2:] for line in stream.splitlines() if line.startswith("# ")]
    record = yaml.safe_load("\n".join(comments[1:]))
    assert (record["kind"], record["metadata"]["name"]) == ("Bundle", "release")
    assert record["status"] == {"phase": "Verified", "environments": {"prod": entry}}


async def test_modules_that_few_planes_need_are_imported_when_needed(tmp_path: Path) -> None:
    program = """
        import asyncio, pathlib, sys
        import kardinal_local.commands.local
        from kardinal_local.plane import LocalPlane
        async def main():
            await (await LocalPlane.start(pathlib.Path(sys.argv[1]))).stop()
        asyncio.run(main())
        heavy = "cryptography kardinal.cel kardinal.kube lark pydantic re2 rich structlog yaml".split()
        print(*(name for name in heavy if name in sys.modules))
    """
    command = (sys.executable, "-c", textwrap.dedent(program), str(tmp_path))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert (process.returncode, output.split()) == (0, [])


def _owned(name: str, owner: Any, **reference: bool) -> Any:
    document = config_map(name)
    identity = {"apiVersion": "v1", "kind": "ConfigMap", "name": "texts", "uid": owner["metadata"]["uid"], **reference}
    document["metadata"]["ownerReferences"] = [identity]
    return document


async def _content(http: Http) -> dict[str, Any]:
    """Return the part of an object that its author wrote."""
    found: dict[str, Any] = {}
    for path in ("/api/v1/configmaps", "/api/v1/secrets", "/apis/example.com/v1/widgets"):
        for item in (await http.get(path)).body["items"]:
            content = {field: item.get(field) for field in ("data", "spec", "type")}
            found[f"{item['metadata']['namespace']}/{item['metadata']['name']}"] = content
    for item in (await http.get("/api/v1/namespaces")).body["items"]:
        found[item["metadata"]["name"]] = item["metadata"]["labels"]
    return found
