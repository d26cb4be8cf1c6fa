"""The guides for operators and developers of supply chains: their files and commands work in the order of the pages."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from kardinal.objects import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, DEPLOYMENT
from kardinal_local.stack import until_served
from tests.cli.in_process import InProcess, cli
from tests.deploy.test_installation import NEWEST
from tests.supplychain.chains import RunningChains, definitions
from tests.support.kubectl import Kubectl
from tests.support.world import World

__all__ = ["cli"]

ROOT = Path(__file__).parents[2]
OPERATOR = (ROOT / "docs/guides/supply-chain-operator.md").read_text()
DEVELOPER = (ROOT / "docs/guides/supply-chain-developer.md").read_text()
NAMESPACE = "my-team"


def yaml_of(page: str, number: int) -> str:
    blocks: list[str] = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return blocks[number]


def commands_of(page: str) -> list[list[str]]:
    blocks = re.findall(r"^```console\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [shlex.split(line.removeprefix("$ ")) for block in blocks for line in block.splitlines()]


@pytest.mark.parametrize("kubectl", [NEWEST], indirect=True)
async def test_the_guides_work_as_they_are_written(
    world: World, cli: InProcess, kubectl: Callable[[Path], Kubectl]
) -> None:
    home = Path(cli.environment["HOME"])
    (home / "deploy").symlink_to(ROOT / "deploy")
    (home / "chain.yaml").write_text(yaml_of(OPERATOR, 0))
    (home / "kinds.yaml").write_text(yaml_of(OPERATOR, 1))
    (home / "workload.yaml").write_text(yaml_of(DEVELOPER, 0))
    for definition in definitions():
        await world.client.create(CUSTOM_RESOURCE_DEFINITION, definition)
    await until_served(world.client, {each["metadata"]["name"] for each in definitions()})
    run = kubectl(world.server.kubeconfig_for("admin"))
    await world.run(lambda client: RunningChains(client, clock=world.clock), identity="supplychain")

    async def typed(page: str) -> dict[str, str]:
        """Return what each command of a page printed."""
        printed = {}
        for program, *arguments in commands_of(page):
            paths = [str(home / word) if word.endswith(".yaml") else word for word in arguments]
            if program == "kardinal":
                printed[" ".join(arguments)] = await cli(*arguments)
            else:
                printed[" ".join(arguments)] = await run(*paths)
                await world.settle()
        return printed

    await run("apply", "-f", str(home / "kinds.yaml"))
    printed = await typed(OPERATOR)
    assert printed["lint -f chain.yaml"] == "3 resources are fine\n"
    assert printed["get workloads -A"].splitlines()[1].split()[:4] == [
        NAMESPACE,
        "shop",
        "ghcr.io/acme/shop:1.4.2",
        "prebuilt",
    ]
    explained = [line.split() for line in printed["explain workload/shop -n my-team"].splitlines()]
    assert ["app", "replicas", "owner", "2"] in explained
    assert ["app", "logLevel", "blueprint", "warning"] in explained
    deployment = await world.get(DEPLOYMENT, "shop", NAMESPACE)
    assert deployment["spec"]["replicas"] == 2
    assert deployment["spec"]["template"]["metadata"]["annotations"] == {"log-level": "warning"}
    assert (await world.get(CONFIG_MAP, "shop-settings", NAMESPACE))["data"] == {"LOG_LEVEL": "warning"}

    printed = await typed(DEVELOPER)
    assert printed["lint -f workload.yaml"] == "1 resource is fine\n"
    found = json.loads(await cli("explain", "workload/shop", "-n", NAMESPACE, "-o", "json"))
    assert {each["name"]: each["stampedRef"]["kind"] for each in found["resources"]} == {
        "settings": "ConfigMap",
        "app": "Deployment",
    }
