"""Install the stand-ins in a namespace of an API server, and run each as a process with the rights of its account."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import yaml

from hack.standins.kinds import KINDS, manifests
from kardinal.kube import Client
from kardinal.objects import CUSTOM_RESOURCE_DEFINITION, ResourceType
from kardinal_local.stack import until_served

__all__ = ["running_standins"]

STOP_SECONDS = 10.0
ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def running_standins(
    client: Client, *, kubeconfig: Path, namespace: str, directory: Path, repositories: Path
) -> AsyncIterator[None]:
    """Run the stand-ins until the end of the block.

    `kubeconfig` is one of the server, `directory` keeps those of the accounts with the logs of the processes, and
    `repositories` is the directory of Git repositories that the source stand-in serves.
    """
    definitions = set()
    for resource, manifest in manifests(namespace):
        await client.apply(resource, manifest, field_manager="standins", force=True)
        if resource == CUSTOM_RESOURCE_DEFINITION:
            definitions.add(manifest["metadata"]["name"])
    await until_served(client, definitions)
    with ExitStack() as stack:
        for name in KINDS:
            own = directory / f"{name}.kubeconfig"
            own.write_text(_with_token(kubeconfig, name, await _token(client, name, namespace)))
            command = [
                sys.executable,
                "-m",
                f"hack.standins.{name}",
                "--kubeconfig",
                str(own),
                "--namespace",
                namespace,
            ]
            if name == "source":
                command += ["--repositories", str(repositories)]
            stack.enter_context(_running(command, directory / f"{name}.log"))
        yield


@contextmanager
def _running(command: list[str], log: Path) -> Iterator[None]:
    with (
        log.open("wb") as output,
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=output, stderr=output) as process,
    ):
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


async def _token(client: Client, account: str, namespace: str) -> str:
    tokens = ResourceType("", "v1", "ServiceAccount", f"serviceaccounts/{account}/token")
    identity = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    made = await client.create(tokens, {**identity, "metadata": {"namespace": namespace}, "spec": {}})
    return str(made["status"]["token"])


def _with_token(kubeconfig: Path, name: str, token: str) -> str:
    """Return a kubeconfig of the same server with the token of an account."""
    document = yaml.safe_load(kubeconfig.read_text())
    document["users"] = [{"name": name, "user": {"token": token}}]
    for context in document["contexts"]:
        context["context"]["user"] = name
    text: str = yaml.safe_dump(document)
    return text
