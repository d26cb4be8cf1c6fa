"""The commands that create, show and steer."""

from __future__ import annotations

import asyncio
import base64
import json
from importlib.metadata import version
from pathlib import Path

import yaml

from kardinal.kube import PatchType
from kardinal.objects import CONFIG_MAP
from kardinal.promotion.api.names import SYSTEM_NAMESPACE, VERSIONS
from kardinal.promotion.kinds import BUNDLE, PIPELINE, POLICY_GATE
from tests.cli.conftest import Cli
from tests.cli.in_process import InProcess, cli
from tests.support.names import DEV, POLICIES, PROD, STAGING, TEAM
from tests.support.objects import bundle, gate, pipeline
from tests.support.programs import start_agent, start_controller
from tests.support.world import World

__all__ = ["cli"]

REPOSITORY = "https://git.example.com/acme/gitops.git"


async def test_create_bundle_makes_one_that_carries_what_was_given(cli: Cli, world: World) -> None:
    await world.apply(pipeline(REPOSITORY))
    printed = await cli(
        *("create", "bundle", "my-app", "--image", "ghcr.io/acme/my-app:1.2.3", "--target", STAGING),
        *("--label", "hotfix=true", "--author", "dana", "--commit", "abc123def456"),
    )
    (created,) = await world.objects(BUNDLE)
    assert printed == f"bundle.kardinal.io/{created['metadata']['name']} created\n"
    assert created["metadata"]["labels"] == {"kardinal.io/pipeline": "my-app", "hotfix": "true"}
    assert created["metadata"]["annotations"]["kardinal.io/source"] == "cli"
    assert created["spec"]["intent"]["target"] == STAGING
    assert created["spec"]["provenance"] == {"author": "dana", "commitSHA": "abc123def456"}


async def test_a_bundle_is_pinned_by_an_annotation_and_a_label_of_that_name_is_refused(cli: Cli, world: World) -> None:
    await world.apply(pipeline(REPOSITORY))
    create = ("create", "bundle", "my-app", "--image", "ghcr.io/acme/my-app:1.2.3")
    refused = await cli.attempt(*create, "--label", "kardinal.io/pin=true")
    assert (refused.code, await world.objects(BUNDLE)) == (2, [])
    assert "is an annotation: pass --pin" in refused.err
    await cli(*create, "--pin")
    (created,) = await world.objects(BUNDLE)
    assert created["metadata"]["annotations"]["kardinal.io/pin"] == "true"
    manifest = {**created, "metadata": {"name": "x", "labels": {"kardinal.io/pin": "true"}}}
    (world.directory / "home" / "bundle.yaml").write_text(yaml.safe_dump(manifest))
    linted = await cli.attempt("lint", "-f", "bundle.yaml")
    assert "metadata.labels[kardinal.io/pin]: a label of this name pins nothing" in linted.err


async def test_two_bundles_of_one_version_and_one_second_both_get_a_name(cli: InProcess, world: World) -> None:
    await world.apply(pipeline(REPOSITORY))
    processes = Cli(Path(cli.environment["KUBECONFIG"]), Path(cli.environment["HOME"]))
    await asyncio.gather(
        *(processes("create", "bundle", "my-app", "--image", "ghcr.io/acme/my-app:1.2.3") for _ in range(3))
    )
    assert len(await world.objects(BUNDLE)) == 3


async def test_lists_are_there_as_tables_json_and_yaml(cli: Cli, world: World) -> None:
    await world.apply(pipeline(REPOSITORY), bundle("my-app-1", tag="1.1.0", provenance={"author": "dana"}))
    table = await cli("get", "bundles", "my-app")
    assert table.splitlines()[0].split() == ["BUNDLE", "VERSION", "PHASE", "ENVIRONMENTS", "COMMIT", "AUTHOR", "AGE"]
    assert {"my-app-1", "1.1.0", "dana"} <= set(table.splitlines()[1].split())
    (as_json,) = json.loads(await cli("get", "bundles", "my-app", "-o", "json"))["items"]
    (as_yaml,) = yaml.safe_load(await cli("get", "bundles", "my-app", "-o", "yaml"))["items"]
    assert as_json == as_yaml
    assert as_json["metadata"]["name"] == "my-app-1"


async def test_get_pipelines_shows_what_is_verified_where(cli: Cli, world: World) -> None:
    await world.apply(pipeline(REPOSITORY), bundle("my-app-1", tag="1.1.0"))
    status = {
        "phase": "Promoting",
        "pipeline": "my-app",
        "environments": {DEV: {"state": "Verified", "verifiedAt": "2026-04-07T10:00:00Z"}},
    }
    await world.client.patch(BUNDLE, "my-app-1", TEAM, {"status": status}, kind=PatchType.MERGE, subresource="status")
    table = await cli("get", "pipelines")
    assert f"{DEV}=1.1.0" in table
    assert f"{STAGING}=-" in table


async def test_pause_creates_a_freeze_gate_and_resume_deletes_it(cli: Cli, world: World) -> None:
    await world.apply(pipeline(REPOSITORY))
    before = await cli.attempt("pause", "my-app", "--message", "audit week")
    assert (before.code, "No such option" in before.err) == (2, True)
    assert await cli("pause", "my-app", "--reason", "audit week") == "Pipeline my-app paused\n"
    frozen = await world.get(POLICY_GATE, "my-app-freeze")
    defaults = {"recheckInterval": "5m", "timeZone": "UTC"}
    assert frozen["spec"] == {"expression": "false", "message": "audit week", **defaults}
    assert frozen["metadata"]["labels"]["kardinal.io/type"] == "freeze"
    assert "already" in await cli("pause", "my-app")
    assert "my-app (paused)" in await cli("get", "pipelines")
    assert await cli("resume", "my-app") == "Pipeline my-app resumed\n"
    assert await world.objects(POLICY_GATE) == []
    assert "not paused" in await cli("resume", "my-app")


async def test_promote_asks_for_a_bundle_and_says_what_the_controller_answers(cli: Cli, world: World) -> None:
    await start_controller(world, standalone=False)
    await world.apply(pipeline(REPOSITORY), bundle("my-app-1", intent={"target": DEV}))
    assert f"goes on to {STAGING}" in await cli("promote", "my-app", "--env", STAGING)
    found = await world.get(BUNDLE, "my-app-1")
    (request,) = found["spec"]["intent"]["requests"]
    assert (request["action"], request["environment"], request["by"]) == ("promote", STAGING, "tester")
    assert [answer["state"] for answer in found["status"]["requests"]] == ["Accepted"]
    assert f"goes on to {STAGING}" in await cli("promote", "my-app", "--env", STAGING)
    done = await cli.attempt("retry", "my-app-1", "--env", STAGING)
    assert done.code == 1
    assert done.err.startswith(f"Error: refused: {STAGING} is Pending")


async def test_promote_and_retry_name_what_is_missing(cli: Cli, world: World) -> None:
    await world.apply(pipeline(REPOSITORY), bundle("my-app-1"))
    assert "--env ENVIRONMENT, --bundle NAME, or both" in (await cli.attempt("promote", "my-app")).err
    assert "no Bundle my-app-2" in (await cli.attempt("retry", "my-app-2", "--env", DEV)).err


async def test_init_makes_a_pipeline_and_names_the_gates_it_will_meet(cli: Cli, world: World) -> None:
    await world.apply(gate("no-weekend-deploys", "!schedule.isWeekend", namespace=POLICIES))
    config = world.directory / "home" / "kardinal.yaml"
    config.write_text(
        "app: shop\nimage: ghcr.io/acme/shop\ngit: {url: https://github.com/acme/gitops, secret: git}\n"
        f"environments: [{DEV}, {PROD}]\nprodApproval: pr-review\n"
    )
    preview = yaml.safe_load(await cli("init", "-o", "yaml"))
    assert await world.objects(PIPELINE) == []
    printed = await cli("init", "--policy-namespace", POLICIES)
    assert printed.startswith(f'Pipeline "shop" created (2 environments: {DEV}, {PROD})\n')
    assert "1 org PolicyGates will be injected: no-weekend-deploys" in printed
    assert "kardinal create bundle shop --image ghcr.io/acme/shop:$TAG" in printed
    created = await world.get(PIPELINE, "shop")
    assert [entry["approval"] for entry in created["spec"]["environments"]] == ["auto", "pr-review"]
    assert created["spec"]["git"]["secretRef"] == {"name": "git"}
    assert preview["spec"]["git"].items() <= created["spec"]["git"].items()
    assert created["spec"]["git"]["provider"] == "github"
    again = await cli.attempt("init")
    assert again.code == 1
    assert "Pipeline shop exists already" in again.err


async def test_explain_before_anything_began_says_what_it_waits_for(cli: Cli, world: World) -> None:
    await world.apply(pipeline(REPOSITORY), bundle("my-app-1", tag="1.1.0"))
    printed = await cli("explain", "my-app", "--env", PROD)
    assert f"PROMOTION: my-app / {PROD}" in printed
    assert "Bundle: my-app-1 (1.1.0)" in printed
    assert "RESULT: WAITING" in printed


async def test_each_program_records_its_version(cli: Cli, world: World) -> None:
    own = version("kardinal")
    assert await cli("version") == f"kardinal     {own}\ncontroller   unknown\n"
    await start_controller(world)
    await start_agent(world, shard="eu.1")
    assert await cli("version") == f"kardinal     {own}\ncontroller   {own}\nagent-eu.1   {own}\n"


async def test_a_version_that_an_agent_wrote_is_bounded_text(cli: Cli, world: World) -> None:
    written = {"agent-eu": "1\x1b[2J\n\u202e2" + "x" * 10_000, "controller": "y" * 100}
    written |= {f"agent-{index:04}": "1" for index in range(500)}
    await world.client.patch(CONFIG_MAP, VERSIONS, SYSTEM_NAMESPACE, {"data": written})
    lines = (await cli("version")).splitlines()
    assert len(lines) == 103
    assert all(line.isprintable() and len(line) < 90 for line in lines)
    assert lines[-1].endswith("401 more")


async def test_nothing_installed_is_an_unknown_version(cli: Cli, world: World) -> None:
    await world.client.delete(CONFIG_MAP, VERSIONS, SYSTEM_NAMESPACE)
    assert (await cli("version")).splitlines()[1:] == ["controller   unknown"]


async def test_colour_is_never_written_to_a_file_or_a_pipe(cli: InProcess, world: World) -> None:
    await world.apply(pipeline(REPOSITORY), bundle("my-app-1"))
    printed = await cli.process()("get", "bundles", "my-app")
    assert "\x1b" not in printed
    assert not any(line.endswith(" ") for line in printed.splitlines())


async def test_without_an_authority_in_the_kubeconfig_those_of_the_machine_are_trusted(cli: Cli, world: World) -> None:
    kubeconfig = Path(cli.environment["KUBECONFIG"])
    document = yaml.safe_load(kubeconfig.read_text())
    authority = world.directory / "home" / "authority.crt"
    (entry,) = document["clusters"]
    # The local plane embeds its authority, the kubeconfig of the real server names a file.
    embedded, named = (entry["cluster"].pop(f"certificate-authority{suffix}", None) for suffix in ("-data", ""))
    authority.write_bytes(base64.b64decode(embedded) if embedded else Path(named).read_bytes())
    kubeconfig.write_text(yaml.safe_dump(document))
    done = await cli.attempt("get", "pipelines")
    assert done.code == 1
    assert "certificate verify failed" in done.err
    cli.environment["SSL_CERT_FILE"] = str(authority)
    assert (await cli.attempt("get", "pipelines")).code == 0


async def test_a_bundle_of_several_images_is_named_by_their_number_and_shown_one_by_one(cli: Cli, world: World) -> None:
    await world.apply(pipeline(REPOSITORY, provider="git"))
    images = ["web=ghcr.io/acme/shop:1.2.3", "ghcr.io/acme/worker:2.0.0", "ghcr.io/acme/cron:3.0.0"]
    printed = await cli("create", "bundle", "my-app", *(part for image in images for part in ("--image", image)))
    assert printed.startswith("bundle.kardinal.io/my-app-1-2-3-plus-2-")
    (created,) = (await world.client.list(BUNDLE, TEAM)).items
    found = [(image["name"], image["reference"]) for image in created["spec"]["artifacts"]["images"]]
    assert found == [
        ("web", "ghcr.io/acme/shop:1.2.3"),
        ("worker", "ghcr.io/acme/worker:2.0.0"),
        ("cron", "ghcr.io/acme/cron:3.0.0"),
    ]
    assert "web:1.2.3, worker:2.0.0, cron:3.0.0" in await cli("get", "bundles", "my-app")
