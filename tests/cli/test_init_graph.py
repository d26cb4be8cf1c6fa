"""A person writes the Graph of a Bundle: the commands that print one and tell what it waits for, and its commits."""

from __future__ import annotations

import json
from datetime import timedelta

import yaml

from kardinal.objects import GRAPH, JsonObject
from kardinal.promotion.kinds import BUNDLE, PIPELINE, POLICY_GATE, PROMOTION_STEP
from tests.cli.conftest import Cli
from tests.cli.in_process import cli
from tests.support.authored import PROMOTER, authored_graph, make_promoter, manual_bundle
from tests.support.names import DEV, POLICIES, PROD, STAGING, TEAM
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.programs import start_controller, start_simulator
from tests.support.repository import APPLICATION, GitRepository, create_repository, sample_files
from tests.support.world import World

__all__ = ["cli"]

PRINT = f"kardinal init --mode graph --from {APPLICATION} --bundle app-1"
ENVIRONMENTS = [
    environment(name, health={"resource": {"name": APPLICATION, "namespace": name}}) for name in (DEV, STAGING, PROD)
]


def labels(name: str, more: str = "") -> str:
    return f"{{kardinal.io/pipeline: {APPLICATION}, kardinal.io/bundle: app-1, kardinal.io/environment: {name}{more}}}"


def step_by_hand(identifier: str, name: str, url: str, *, upstreams: tuple[str, str] | None, gates: str = "") -> str:
    """Return the node of a step; `upstreams` is the environment before it, and the id of that."""
    before = f"upstreamVerified: ${{{upstreams[1]}.status.state}}" if upstreams else ""
    return f"""
    - id: {identifier}
      x-kardinal: {{kind: step, environment: {name}, upstreams: [{upstreams[0] if upstreams else ""}]}}
      readyWhen: ['${{{identifier}.status.state == "Verified"}}']
      propagateWhen:
        - ${{{identifier}.status.state == "Verified"}}
        - ${{!has({identifier}.status.healthy) || {identifier}.status.healthy}}
      template:
        apiVersion: kardinal.io/v1alpha1
        kind: PromotionStep
        metadata: {{name: app-1-{name}, namespace: {TEAM}, labels: {labels(name)}}}
        spec:
          pipeline: {APPLICATION}
          environment: {name}
          bundleRef: ${{bundle.metadata.name}}
          path: environments/{name}
          git: {{url: "{url}", branch: main, layout: directory, provider: git, statusOnOthers: false}}
          update: {{strategy: kustomize, verifyEffect: fail, images: []}}
          approval: auto
          pr: false
          steps:
            - uses: git-clone
            - uses: kustomize-set-image
            - uses: git-commit
            - uses: git-push
            - uses: health-check
          health:
            type: resource
            resource: {{name: {APPLICATION}, namespace: {name}, condition: Available}}
            timeout: 10m
            failureGrace: 30s
            degradedAfter: 1m
          delivery: {{delegate: none}}
          requiredGates: [{gates}]
          {before}
"""


def gate_by_hand(identifier: str, name: str, expression: str) -> str:
    """Return the node of a gate of the organisation before prod."""
    ready = f"${{{identifier}.status.ready == true}}"
    status = f"{identifier}.status"
    return f"""
    - id: {identifier}
      x-kardinal: {{kind: gate, environment: {PROD}, gate: {{namespace: {POLICIES}, name: {name}}}}}
      readyWhen: ["{ready}"]
      propagateWhen:
        - "{ready}"
        - ${{timestamp({status}.lastEvaluatedAt) > now() - duration("10m")}}
        - "${{!has({status}.nextTransitionAt) || timestamp({status}.nextTransitionAt) > now()}}"
      template:
        apiVersion: kardinal.io/v1alpha1
        kind: PolicyGate
        metadata:
          name: app-1-{PROD}-{name}
          namespace: {TEAM}
          labels: {labels(PROD, f", kardinal.io/gate: {name}, kardinal.io/scope: org")}
        spec:
          expression: "{expression}"
          message: ""
          recheckInterval: 5m
          origin:
            namespace: {POLICIES}
            name: {name}
            scope: org
            pipeline: {APPLICATION}
            bundle: app-1
            environment: {PROD}
            approval: auto
          upstreamEnvironment: ${{staging.spec.environment}}
"""


def graph_by_hand(url: str) -> JsonObject:
    """Return the Graph of section 5.3 of the first design, in the dialect of this version."""
    document = f"""
apiVersion: experimental.kro.run/v1alpha1
kind: Graph
metadata: {{name: app-1, namespace: {TEAM}}}
spec:
  bundleRef: app-1
  serviceAccountName: {PROMOTER}
  nodes:
    - id: bundle
      ref: {{apiVersion: kardinal.io/v1alpha1, kind: Bundle, metadata: {{name: app-1, namespace: {TEAM}}}}}
{step_by_hand("dev", DEV, url, upstreams=None)}
{step_by_hand("staging", STAGING, url, upstreams=(DEV, "dev"))}
{gate_by_hand("noWeekendDeploys", "no-weekend-deploys", "schedule.isWeekend || !schedule.isWeekend")}
{gate_by_hand("stagingSoak", "staging-soak", "bundle.upstreamSoakMinutes >= 30")}
{
        step_by_hand(
            "prod",
            PROD,
            url,
            upstreams=(STAGING, "staging"),
            gates="'${noWeekendDeploys.metadata.name}', '${stagingSoak.metadata.name}'",
        )
    }
"""
    found: JsonObject = yaml.safe_load(document)
    return found


def is_waiting(stored: JsonObject) -> bool:
    """Return whether a Bundle is Available, and waits for its Graph."""
    status = stored.get("status", {})
    reasons = {each["type"]: each["reason"] for each in status.get("conditions", ())}
    return status.get("phase") == "Available" and reasons.get("Ready") == "WaitingForGraph"


async def waiting_bundle(world: World, repository: GitRepository, *gates: JsonObject) -> None:
    """Have a Bundle wait for its Graph."""
    await make_promoter(world)
    await world.apply(pipeline(repository, provider="git", environments=ENVIRONMENTS), *gates)
    await start_controller(world)
    await start_simulator(world, delay=timedelta(0))
    await world.apply(manual_bundle())
    await world.wait_for(BUNDLE, "app-1", is_waiting)


async def test_bundle_that_waits_for_its_graph_tells_how_to_make_one(
    cli: Cli, world: World, repository: GitRepository
) -> None:
    await waiting_bundle(world, repository)
    shown = await cli("status", APPLICATION)
    assert "WaitingForGraph" in shown
    assert PRINT in shown
    explained = await cli("explain", APPLICATION, "--env", DEV)
    assert PRINT in " ".join(explained.split())
    [row] = [line for line in (await cli("get", "bundles", APPLICATION)).splitlines() if "app-1" in line]
    assert "WaitingForGraph" in row
    await world.settle()
    assert await world.objects(GRAPH) == []


async def test_refusal_is_shown_with_its_reason(cli: Cli, world: World, repository: GitRepository) -> None:
    await waiting_bundle(world, repository)
    graph = await authored_graph(world)
    graph["spec"]["nodes"].append({"id": "extra", "def": 1})
    await world.apply(graph)
    why = "node extra: def"
    await world.wait_for(GRAPH, "app-1", lambda obj: why in json.dumps(obj.get("status")))
    for shown in (await cli("status", APPLICATION), await cli("explain", "graph/app-1")):
        assert why in " ".join(shown.split())
    assert "REFUSED" in await cli("explain", APPLICATION, "--env", PROD)


async def test_printed_graph_makes_the_commits_that_the_pipeline_would(
    cli: Cli, world: World, repository: GitRepository
) -> None:
    """Promote the same image by a Pipeline of its own in another repository, and by hand, and compare the trees."""
    other = create_repository(world.directory / "other.git", sample_files([DEV, STAGING, PROD]))
    await world.apply(
        gate("any-day", "true", namespace=POLICIES),
        pipeline(other, name="sibling", provider="git", environments=ENVIRONMENTS),
    )
    await waiting_bundle(world, repository)
    await world.apply(bundle("sibling-1", pipeline="sibling"))
    await world.wait_for(BUNDLE, "sibling-1", lambda obj: obj["status"].get("phase") == "Verified")
    printed = await cli("init", "--mode", "graph", "--from", APPLICATION, "--policy-namespace", POLICIES)
    await world.client.create(GRAPH, yaml.safe_load(printed))
    done = await world.wait_for(BUNDLE, "app-1", lambda obj: obj["status"].get("phase") == "Verified")
    assert done["status"]["graphRef"] == "app-1"
    assert trees(repository) == trees(other)
    assert len(trees(repository)) == 4
    assert (await world.get(BUNDLE, "sibling-1"))["status"]["environments"].keys() == done["status"][
        "environments"
    ].keys()


def trees(repository: GitRepository) -> list[str]:
    return repository.git("log", "--format=%T", "main").splitlines()


async def test_graph_of_the_first_design_is_written_by_hand_and_walked(
    cli: Cli, world: World, repository: GitRepository
) -> None:
    await waiting_bundle(
        world,
        repository,
        gate("no-weekend-deploys", "schedule.isWeekend || !schedule.isWeekend", namespace=POLICIES, message=""),
        gate("staging-soak", "bundle.upstreamSoakMinutes >= 30", namespace=POLICIES, message=""),
    )
    await world.apply(graph_by_hand(repository.url))
    await world.wait_for(
        POLICY_GATE, f"app-1-{PROD}-staging-soak", lambda obj: obj.get("status", {}).get("ready") is False
    )
    await world.settle()
    lines = (await cli("explain", "graph/app-1")).splitlines()
    assert lines[0] == "GRAPH: app-1"
    states = {line.split()[0]: line.split()[2] for line in lines[2:-1]}
    assert states == {
        "bundle": "Ready",
        "dev": "Ready",
        "staging": "Ready",
        "noWeekendDeploys": "Ready",
        "stagingSoak": "NotReady",
        "prod": "Pending",
    }
    assert lines[-1].startswith("RESULT: WAITING at stagingSoak")
    assert await world.find(PROMOTION_STEP, f"app-1-{PROD}") is None
    # A template is asked as it is now, whatever the Graph was made of.
    await world.apply(gate("staging-soak", "bundle.upstreamSoakMinutes >= 0", namespace=POLICIES, message=""))
    await world.wait_for(BUNDLE, "app-1", lambda obj: obj["status"].get("phase") == "Verified")
    assert (await cli("explain", "graph/app-1")).splitlines()[-1] == "RESULT: READY"
    assert len(repository.promotions(PROD)) == 1


async def test_graph_is_printed_for_the_newest_bundle_that_waits(
    cli: Cli, world: World, repository: GitRepository
) -> None:
    await world.apply(pipeline(repository, provider="git"), bundle("auto"))
    done = await cli.attempt("init", "--mode", "graph", "--from", APPLICATION)
    assert (done.code, done.out) == (1, "")
    assert "no Bundle of my-app waits for a Graph" in done.err
    assert "spec.intent.graph: manual" in done.err
    done = await cli.attempt("init", "--mode", "graph", "--from", APPLICATION, "--bundle", "auto")
    assert "Bundle auto gets" in done.err
    await world.apply(manual_bundle("app-1"))
    printed = yaml.safe_load(
        await cli("init", "--mode", "graph", "--from", APPLICATION, "--account", "deployer", "-n", TEAM)
    )
    assert printed["metadata"]["name"] == printed["spec"]["bundleRef"] == "app-1"
    assert printed["spec"]["serviceAccountName"] == "deployer"
    assert "ownerReferences" not in printed["metadata"]
    done = await cli.attempt("init", "--mode", "graph")
    assert (done.code, done.out) == (2, "")
    assert "--from PIPELINE" in done.err


async def test_retry_of_a_bundle_by_hand_begins_another_attempt(
    cli: Cli, world: World, repository: GitRepository
) -> None:
    """Fail in dev because the repository has no such directory, mend it, and try again."""
    await waiting_bundle(world, repository)
    early = await cli.attempt("promote", APPLICATION, "--bundle", "app-1", "--env", DEV)
    assert early.code != 0
    lost = repository.git("show", f"main:environments/{DEV}/kustomization.yaml")
    repository.commit({f"environments/{DEV}/kustomization.yaml": "kind: [}"}, message="Break it")
    await world.apply(await authored_graph(world))
    await world.wait_for(BUNDLE, "app-1", lambda obj: obj["status"].get("phase") == "Failed")
    refused = await cli.attempt("promote", APPLICATION, "--bundle", "app-1", "--env", "nowhere")
    assert refused.code != 0
    repository.commit({f"environments/{DEV}/kustomization.yaml": lost + "\n"}, message="Mend it")
    await cli("retry", "app-1", "--env", DEV)
    done = await world.wait_for(BUNDLE, "app-1", lambda obj: obj["status"].get("phase") == "Verified")
    assert done["status"]["environments"][DEV]["attempt"] == 2
    assert PIPELINE.kind not in str((await world.get(GRAPH, "app-1"))["metadata"]["ownerReferences"])
