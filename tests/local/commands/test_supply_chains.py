"""`kardinal local up --supply-chains`: their kinds are served and stamped, and without the flag nothing of them is."""

from __future__ import annotations

import asyncio
import json
import sys
import textwrap
from pathlib import Path

import aiohttp
import pytest

from hack.renderers.assets import find
from kardinal.kube import Client, NotFound
from kardinal.objects import CONFIG_MAP, JsonObject, ResourceType
from kardinal_supplychain.api.kinds import CLUSTER_SUPPLY_CHAIN, CLUSTER_TEMPLATE, WORKLOAD
from tests.resilience.processes import Local, Shell, make_namespace, wait_for
from tests.support.names import TEAM

pytestmark = [pytest.mark.local_only("the programs of a plane"), pytest.mark.timeout(180)]

_API = WORKLOAD.api_version


async def _apply(client: Client, resource: ResourceType, obj: JsonObject) -> None:
    await client.apply(resource, obj, field_manager="test")


BODY = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "$(workload.metadata.name)$"}}
TAGGED = {"template": {**BODY, "data": {"port": "$(params.port)$"}}}
YTT = """\
#@ load("@ytt:data", "data")
apiVersion: v1
kind: ConfigMap
metadata:
  name: #@ data.values.workload.metadata.name
data:
  port: #@ data.values.params.port
"""


async def _write_chain(client: Client, template_of: JsonObject) -> None:
    """Make a chain of one ConfigMap, and a Workload for it."""
    await make_namespace(client)
    template = {
        "apiVersion": _API,
        "kind": "ClusterTemplate",
        "metadata": {"name": "note"},
        "spec": {"params": [{"name": "port", "default": "80"}], **template_of},
    }
    resource = {"name": "note", "templateRef": {"kind": "ClusterTemplate", "name": "note"}}
    chain = {
        "apiVersion": _API,
        "kind": "ClusterSupplyChain",
        "metadata": {"name": "notes"},
        "spec": {"selector": {"type": "web"}, "resources": [resource]},
    }
    workload = {
        "apiVersion": _API,
        "kind": "Workload",
        "metadata": {"name": "shop", "namespace": TEAM, "labels": {"type": "web"}},
        "spec": {},
    }
    await _apply(client, CLUSTER_TEMPLATE, template)
    await _apply(client, CLUSTER_SUPPLY_CHAIN, chain)
    await _apply(client, WORKLOAD, workload)


def _ready(obj: JsonObject) -> bool:
    conditions = obj.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


async def test_a_workload_is_stamped_and_stays_as_it_is_over_a_restart(shell: Shell, tmp_path: Path) -> None:
    local = Local(shell, tmp_path / "local", "--supply-chains")
    await local.up()
    chains = (await local.process.says("chains ")).split()[-1]
    async with aiohttp.ClientSession() as session, session.get(chains) as answer:
        assert "controller_runtime_reconcile_total" in await answer.text()
    async with local.client() as client:
        await _write_chain(client, TAGGED)
        await wait_for(client, WORKLOAD, _ready, "shop", namespace=TEAM)
        before = await client.get(CONFIG_MAP, "shop", TEAM)
    assert before["data"] == {"port": "80"}
    shown = (await local.kardinal("get", "workloads", "-n", TEAM)).splitlines()
    assert shown[1].split()[:4] == ["shop", "notes", "True", "Ready"]
    explained = json.loads(await local.kardinal("explain", "workload/shop", "-n", TEAM, "-o", "json"))
    assert explained["result"] == "READY"

    await local.kill()
    await local.up()
    assert (await local.process.says("chains ")).split()[-1] == chains
    async with local.client() as client:
        await wait_for(client, WORKLOAD, _ready, "shop", namespace=TEAM)
        after = await client.get(CONFIG_MAP, "shop", TEAM)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    await local.kill()


async def test_a_template_of_ytt_is_rendered_by_the_program_that_is_named(shell: Shell, tmp_path: Path) -> None:
    ytt = find("ytt")
    if ytt is None:
        pytest.skip("there is no ytt: `make renderers` builds it")
    local = Local(shell, tmp_path / "local", "--supply-chains", "--ytt", str(ytt))
    await local.up()
    async with local.client() as client:
        await _write_chain(client, {"ytt": YTT})
        await wait_for(client, WORKLOAD, _ready, "shop", namespace=TEAM)
        assert (await client.get(CONFIG_MAP, "shop", TEAM))["data"] == {"port": "80"}
    await local.kill()


async def test_their_kinds_are_not_there_without_the_flag(shell: Shell, tmp_path: Path) -> None:
    local = Local(shell, tmp_path / "local")
    await local.up()
    async with local.client() as client:
        with pytest.raises(NotFound):
            await client.list(WORKLOAD)
    assert not any(line.startswith("chains") for line in local.process.lines)
    await local.kill()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--ytt", sys.executable), "add --supply-chains"),
        (("--supply-chains", "--only", "plane"), "--supply-chains needs the controllers"),
        (("--supply-chains", "--ytt", "/nowhere"), "does not exist"),
    ],
)
async def test_a_flag_that_would_do_nothing_is_refused(
    shell: Shell, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    assert said in await shell.run("kardinal", "local", "up", "--dir", tmp_path / "local", *options, code=2)


async def test_no_module_of_them_is_imported_without_the_flag(tmp_path: Path) -> None:
    program = """
        import asyncio, pathlib, sys
        import kardinal_local.commands.local
        from kardinal_local.serving import PlaneOptions
        from kardinal_local.stack import run_stack
        async def main():
            async with run_stack(pathlib.Path(sys.argv[1]), options=PlaneOptions(port=0)):
                pass
        asyncio.run(main())
        print([name for name in sys.modules if name.startswith("kardinal_supplychain")])
    """
    command = (sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "local"))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert (process.returncode, out.decode()) == (0, "[]\n")
