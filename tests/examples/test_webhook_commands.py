"""The shell commands that the pages show for the webhook, run as they stand there."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from kardinal.clock import SystemClock
from kardinal.objects import SECRET
from kardinal.promotion.api.names import ANNOTATION_ATTESTATION
from kardinal.promotion.kinds import BUNDLE
from tests.http.conftest import REPOSITORY, start_api
from tests.support.kubectl import Kubectl, kubectl_versions
from tests.support.names import TEAM
from tests.support.objects import pipeline
from tests.support.webhook import HMAC_KEY, TOKEN, webhook_secret
from tests.support.world import World

ROOT = Path(__file__).parents[2]
SHELLS = [shell for shell in ("sh", "dash", "bash", "zsh") if shutil.which(shell)]
NEWEST = list(kubectl_versions() or ["none found"])[-1]


def commands(page: str) -> list[str]:
    """Return the blocks of shell commands that are about the webhook."""
    text = (ROOT / page).read_text()
    return [
        block
        for block in re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        if "webhook" in block or "signature" in block
    ]


async def run(shell: str, script: str, **environment: str) -> str:
    process = await asyncio.create_subprocess_exec(
        shell,
        "-eu",
        "-c",
        script,
        env={"PATH": os.environ["PATH"], **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, f"{script}\n{err.decode()}{out.decode()}"
    return out.decode()


async def url_of_api(world: World) -> str:
    """Start the webhook; a shell signs with the time of the machine."""
    await world.apply(pipeline(REPOSITORY, provider="git", environments=["dev", "staging", "prod"]))
    program = await start_api(world, clock=SystemClock())
    return program.api.url


@pytest.mark.shows_secrets("the shell of CI has them in its environment")
@pytest.mark.parametrize("shell", SHELLS)
async def test_the_request_of_the_readme_makes_a_bundle(world: World, shell: str) -> None:
    await world.client.create(SECRET, webhook_secret())
    [request] = commands("README.md")
    variables = {"TOKEN": TOKEN, "HMAC_KEY": HMAC_KEY, "NAMESPACE": TEAM, "CI_RUN_ID": "1042"}
    answer = orjson.loads(await run(shell, request, KARDINAL_URL=await url_of_api(world), **variables))
    made = await world.get(BUNDLE, answer["name"])
    assert made["spec"]["artifacts"]["images"][0]["reference"] == "ghcr.io/acme/my-app:1.29.0"


@pytest.mark.parametrize("kubectl", [NEWEST], indirect=True)
async def test_the_commands_of_the_page_make_a_token_and_a_bundle_that_may_skip(
    world: World, kubectl: Callable[[Path], Kubectl], tmp_path: Path
) -> None:
    cluster = kubectl(world.server.kubeconfig)
    shown = tmp_path / "kubectl"
    shown.symlink_to(cluster.binary)
    variables = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "KUBECONFIG": str(world.server.kubeconfig),
        "NAMESPACE": TEAM,
        "CI_RUN_ID": "1042",
        "KARDINAL_URL": await url_of_api(world),
    }
    credentials, request, without_unstamped = commands("docs/webhook.md")
    out = await run("sh", f"cd {tmp_path}\n{credentials}\n{request}", **variables)
    answer = orjson.loads(out[out.index("{") :])
    attested = (await world.get(BUNDLE, answer["name"]))["metadata"]["annotations"][ANNOTATION_ATTESTATION]
    assert (orjson.loads(attested)["token"], orjson.loads(attested)["maySkip"]) == ("release", ["staging"])
    await world.client.patch(SECRET, "kardinal-webhook", TEAM, {"stringData": {"allowUnstamped": "true"}})
    await run("sh", without_unstamped, **variables)
    assert "allowUnstamped" not in (await world.get(SECRET, "kardinal-webhook"))["data"]
