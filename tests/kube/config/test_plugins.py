"""Users whose credentials come from another program."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kardinal.kube import ConfigError, load_connection
from tests.kube.config.conftest import Identity, config


async def test_an_exec_plugin_is_run_again_when_its_token_is_refused(
    write: Callable[[object], Path], tmp_path: Path
) -> None:
    counter = tmp_path / "runs"
    counter.write_text("")
    script = tmp_path / "plugin.py"
    script.write_text(
        "import json, pathlib\n"
        f"runs = pathlib.Path({str(counter)!r})\n"
        "runs.write_text(runs.read_text() + 'x')\n"
        "status = {'token': 'token-' + str(len(runs.read_text()))}\n"
        "answer = {'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential', 'status': status}\n"
        "print(json.dumps(answer))\n"
    )
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": [str(script)]}
    connection = await load_connection(write(config(exec=plugin)))
    first = await connection.access()
    assert first.authorization == "Bearer token-1"
    assert (await connection.access()) is first
    assert (await connection.renew(first)).authorization == "Bearer token-2"
    # Another request noticed the same stale token a moment later.
    assert (await connection.renew(first)).authorization == "Bearer token-2"


async def test_an_exec_plugin_can_hand_out_a_client_certificate(
    write: Callable[[object], Path], tmp_path: Path, authority: Identity
) -> None:
    answer = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"clientCertificateData": authority.certificate, "clientKeyData": authority.key},
    }
    output = tmp_path / "answer.yaml"
    output.write_text(json.dumps(answer))
    content = config(exec={"apiVersion": answer["apiVersion"], "command": "cat", "args": [str(output)]})
    content["clusters"][0]["cluster"] = {"server": "https://127.0.0.1:1"}
    access = await (await load_connection(write(content))).access()
    assert access.tls is not None
    assert access.authorization is None


async def test_a_failing_exec_plugin_is_quoted(write: Callable[[object], Path]) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sh",
        "args": ["-c", "echo log in >&2; exit 3"],
    }
    with pytest.raises(ConfigError, match=r"process returned 3\. log in"):
        await load_connection(write(config(exec=plugin)))


async def test_a_plugin_that_is_not_installed_is_named(write: Callable[[object], Path]) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin"}
    with pytest.raises(ConfigError, match=r"exec: no-such-plugin cannot be run \(No such file"):
        await load_connection(write(config(exec=plugin)))


async def test_an_auth_provider_yields_a_token(write: Callable[[object], Path]) -> None:
    claims = base64.b64encode(json.dumps({"sub": "ana"}).encode()).decode().rstrip("=")
    provider = {"name": "oidc", "config": {"id-token": f"header.{claims}.signature"}}
    connection = await load_connection(write(config(**{"auth-provider": provider})))
    assert (await connection.access()).authorization == f"Bearer header.{claims}.signature"


def test_the_library_for_plugins_is_imported_for_them_alone(
    write: Callable[..., Path], pod: Path, authority: Identity
) -> None:
    certificate, key = authority.write(pod)
    certificates = config(
        cluster={"server": "https://127.0.0.1:1", "certificate-authority": str(certificate)},
        **{"client-certificate": str(certificate), "client-key": str(key)},
    )
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "false"}
    script = f"""
import asyncio, sys
from pathlib import Path
from kardinal.kube import ConfigError, in_cluster, load_connection

in_cluster.SERVICE_ACCOUNT = Path({str(pod)!r})

async def load(*files):
    for file in files:
        await load_connection(*map(Path, file))

asyncio.run(load([{str(write(config(token="t"), "token"))!r}], [{str(write(certificates, "certificates"))!r}], []))
print("kubernetes_asyncio" in sys.modules)
try:
    asyncio.run(load([{str(write(config(exec=plugin), "plugin"))!r}]))
except ConfigError as error:
    print("exec: process returned 1" in str(error), "kubernetes_asyncio" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, env=dict(os.environ), stdout=subprocess.PIPE, text=True
    )
    assert done.stdout == "False\nTrue True\n"
