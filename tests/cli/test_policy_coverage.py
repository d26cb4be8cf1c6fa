"""`kardinal policy coverage`: which paths are written to, and which gates hold the writers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from kardinal.objects import JsonObject
from tests.cli.conftest import Cli
from tests.cli.in_process import InProcess, cli
from tests.support.names import DEV, POLICIES, PROD, TEAM, of_run
from tests.support.objects import bundle, environment, gate, namespace, pipeline
from tests.support.world import World

__all__ = ["cli"]

REPOSITORY = "https://git.example.com/Acme/GitOps.git"
KEY = "git.example.com/acme/gitops"
ASKING = ("policy", "coverage", "--policy-namespaces", POLICIES)


async def test_each_path_is_listed_with_its_writers_and_their_gates(cli: Cli, world: World) -> None:
    elsewhere = of_run("elsewhere")
    prd = environment("prd", path="./environments//prod/")
    await world.apply(namespace(elsewhere))
    await world.apply(
        pipeline(REPOSITORY, environments=[DEV, environment(PROD, path="environments/prod")], provider="git"),
        pipeline("https://GIT.example.com/acme/gitops", environments=[prd], provider="git", namespace=elsewhere),
        pipeline("https://git.example.com:8443/acme/gitops", name="apart", environments=["one"], provider="git"),
        gate("soak", "false", applies_to=None, namespace=POLICIES, match={"paths": ["environments/prod"]}),
        gate("ours", "true", applies_to=PROD),
        gate("hotfix", "true", applies_to=None, namespace=POLICIES, labels={"kardinal.io/type": "skip-permission"}),
    )
    found = json.loads(await cli(*ASKING, "-o", "json"))
    assert found["notes"] == []
    listed = {(path["repository"], path["path"]): path for path in found["paths"]}
    assert set(listed) == {
        (KEY, f"environments/{DEV}"),
        (KEY, "environments/prod"),
        ("git.example.com:8443/acme/gitops", "environments/one"),
    }
    assert {key[1]: path["bound"] for key, path in listed.items()} == {
        f"environments/{DEV}": False,
        "environments/prod": True,
        "environments/one": False,
    }
    writers = {
        (writer["namespace"], writer["environment"]): [gate["name"] for gate in writer["gates"]]
        for writer in listed[KEY, "environments/prod"]["writers"]
    }
    assert writers == {(TEAM, PROD): ["soak", "ours"], (elsewhere, "prd"): ["soak"]}


async def test_a_path_with_a_writer_that_no_gate_holds_counts_as_open(cli: Cli, world: World) -> None:
    await world.apply(
        pipeline(REPOSITORY, environments=[environment(PROD, path="prod")], provider="git"),
        pipeline(REPOSITORY, name="other", environments=[environment("prd", path="prod")], provider="git"),
        gate("named", "false", applies_to=PROD, namespace=POLICIES),
    )
    (path,) = json.loads(await cli(*ASKING, "-o", "json"))["paths"]
    assert path["bound"] is False
    assert "1 of 1 paths can be written to without a gate." in await cli(*ASKING)


async def test_each_gate_and_writer_has_a_line_and_no_name_is_broken(cli: Cli, world: World) -> None:
    long = "environments/production/europe-west/frankfurt/blue"
    await world.apply(
        pipeline(REPOSITORY, environments=[environment(PROD, path=long)], provider="git"),
        gate("no-deployments-at-weekends-and-holidays", "false", applies_to=None, namespace=POLICIES),
        gate("second", "false", applies_to=None, namespace=POLICIES),
    )
    table = (await cli(*ASKING)).splitlines()
    assert table[0] == f"{KEY}, branch main"
    assert [line.split() for line in table[2:5]] == [
        ["PATH", "WRITTEN", "BY", "GATES"],
        [long, f"{TEAM}/my-app", f"{POLICIES}/no-deployments-at-weekends-and-holidays"],
        [PROD, f"{POLICIES}/second"],
    ]
    assert "Gates bind every path." in table


async def test_a_namespace_narrows_the_list(cli: Cli, world: World) -> None:
    elsewhere = of_run("elsewhere")
    await world.apply(namespace(elsewhere))
    await world.apply(
        pipeline(REPOSITORY, environments=[DEV]), pipeline(REPOSITORY, environments=["far"], namespace=elsewhere)
    )
    for name, path in ((TEAM, f"environments/{DEV}"), (elsewhere, "environments/far")):
        found = json.loads(await cli(*ASKING, "-o", "json", "-n", name))
        assert [entry["path"] for entry in found["paths"]] == [path]


async def test_without_pipelines_it_says_what_to_do(cli: Cli, world: World) -> None:
    done = await cli.attempt(*ASKING)
    assert (done.code, done.out) == (0, "")
    assert "no Pipeline" in done.err
    assert "kardinal init" in done.err


async def test_a_pipeline_with_an_impossible_repository_is_named(cli: Cli, world: World) -> None:
    await world.apply(pipeline("https://robot:hunter2@1/x", environments=[DEV]), bundle("app-1"))
    done = await cli.attempt(*ASKING)
    assert done.code == 0
    assert f"Pipeline {TEAM}/my-app writes to nothing" in done.err
    assert "hunter2" not in done.err + done.out


async def test_names_cannot_write_to_the_terminal(cli: Cli, world: World) -> None:
    spoofed = "a\x1b[2J\u202e\nGates bind every path."
    git = {"url": REPOSITORY, "provider": "git", "branch": "main\x1b[31m\r"}
    await world.apply(pipeline("", git=git, environments=[environment(DEV, path=spoofed)]))
    table = await cli(*ASKING)
    assert all(line.isprintable() for line in table.splitlines())
    assert "Gates bind every path." not in table.splitlines()
    assert json.loads(await cli(*ASKING, "-o", "json"))["paths"][0]["path"] == spoofed


LISTS: Mapping[str, list[JsonObject]] = {
    f"/apis/kardinal.io/v1alpha1/namespaces/{TEAM}/pipelines": [pipeline(REPOSITORY, environments=[DEV])],
    f"/apis/kardinal.io/v1alpha1/namespaces/{TEAM}/policygates": [gate("ours", "true", applies_to=None)],
}


@pytest.fixture
async def only_own_namespace(tmp_path: Path) -> AsyncIterator[Cli]:
    """Return the command on a server that lets its caller read one namespace."""

    async def answer(request: web.Request) -> web.Response:
        if (found := LISTS.get(request.path)) is not None:
            return web.json_response({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": found})
        refusal = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": "no", "code": 403}
        return web.json_response(refusal, status=403)

    application = web.Application()
    application.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    context = {"name": "it", "context": {"cluster": "it", "user": "it", "namespace": TEAM}}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        yaml.safe_dump(
            {
                "current-context": "it",
                "contexts": [context],
                "clusters": [{"name": "it", "cluster": {"server": f"http://{host}:{port}"}}],
                "users": [{"name": "it", "user": {}}],
            }
        )
    )
    yield InProcess(kubeconfig, tmp_path)
    await runner.cleanup()


async def test_unreadable_namespace_is_left_out_and_named(only_own_namespace: Cli) -> None:
    done = await only_own_namespace.attempt(*ASKING)
    assert done.code == 0, done.err
    assert f"environments/{DEV}" in done.out
    assert f"{TEAM}/ours" in done.out
    assert f"these are of {TEAM}" in done.err
    assert f"the PolicyGates of {POLICIES}" in done.err
    documents = json.loads(await only_own_namespace(*ASKING, "-o", "json"))
    assert len(documents["notes"]) == 2
