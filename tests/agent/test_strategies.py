"""Promotions by other edits than that of a kustomization, from the Pipeline to Verified."""

from __future__ import annotations

from typing import Any

from kardinal.objects import JsonObject
from kardinal.promotion.api import names
from kardinal.promotion.kinds import PROMOTION_STEP
from kardinal.scm import PullRequests
from tests.agent.promotion_steps import deploy
from tests.support.names import DEV, PROD, STAGING
from tests.support.objects import bundle, environment, pipeline
from tests.support.programs import start_controller
from tests.support.repository import IMAGE, GitRepository
from tests.support.world import World

BUNDLE = "my-app-1"
DIRECTORY = f"environments/{DEV}"
VALUES = f"""\
# The values of dev.
image:
  repository: {IMAGE}
  tag: "1.0.0"   # moved by promotions
replicas: 2
"""


async def promote(world: World, repository: GitRepository, *states: str, **fields: Any) -> JsonObject:
    """Promote one Bundle into one environment; returns the status of its step once it is in one of `states`."""
    await start_controller(world)
    await deploy(world)
    await world.apply(pipeline(repository, environments=[environment(DEV, **fields)]), bundle(BUNDLE))
    return await reached(world, *states)


async def reached(world: World, *states: str, in_: str = DEV) -> JsonObject:
    step = await world.wait_for(
        PROMOTION_STEP,
        names.step_name(BUNDLE, in_),
        lambda step: (step.get("status") or {}).get("state") in states,
    )
    status: JsonObject = step["status"]
    return status


async def test_values_of_a_chart_are_proposed_with_the_images_that_change(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    text = f"web:\n  container: {{image: '{IMAGE}:1.0.0'}}\n"
    repository.commit({f"{DIRECTORY}/chart/prod.yaml": text})
    helm = {"file": "chart/prod.yaml", "values": [{"path": "web.container.image", "value": "reference"}]}
    await promote(
        world, repository, "WaitingForMerge", "Failed", approval="pr-review", update={"strategy": "helm", "helm": helm}
    )
    (found,) = await reviewer.list()
    assert f"- {IMAGE}: 1.0.0 to 1.1.0 in {DIRECTORY}/chart/prod.yaml" in found.body.replace("\\", "")
    await reviewer.merge(found.number, by="alice")
    await reached(world, "Verified")
    assert repository.read(f"{DIRECTORY}/chart/prod.yaml") == text.replace("1.0.0", "1.1.0")


async def test_environments_of_one_pipeline_take_the_image_by_edits_of_their_own(
    world: World, repository: GitRepository
) -> None:
    """Values of a chart, a literal in any text, and a sequence of edits that is one commit."""
    text = f'image = "{IMAGE}:1.0.0"\nworker = "{IMAGE}-worker:1.0.0"\n'
    dev, staging, prod = (f"environments/{name}" for name in (DEV, STAGING, PROD))
    repository.commit(
        {
            f"{dev}/values.yaml": VALUES,
            f"{staging}/main.tf": text,
            f"{prod}/template.yaml": VALUES,
            f"{prod}/old.json": "{}",
        }
    )
    edits: list[JsonObject] = [
        {"uses": "copy", "config": {"from": "template.yaml", "to": "app/values.yaml"}},
        {"uses": "helm-set-image", "config": {"file": "app/values.yaml"}},
        {"uses": "yaml-update", "config": {"file": "app/values.yaml", "updates": [{"path": "replicas", "value": 3}]}},
        {"uses": "delete", "config": {"paths": ["*.json"]}},
    ]
    around = [{"uses": "git-clone"}, *edits, *({"uses": uses} for uses in ("git-commit", "git-push", "health-check"))]
    environments = [
        environment(DEV, update={"strategy": "helm"}),
        environment(STAGING, update={"strategy": "replace", "replace": {"files": ["main.tf"]}}),
        environment(PROD, steps=around),
    ]
    await start_controller(world)
    for name in (DEV, STAGING, PROD):
        await deploy(world, name)
    await world.apply(pipeline(repository, environments=environments), bundle(BUNDLE))

    status = await reached(world, "Verified", "Failed")
    assert status["state"] == "Verified", status["message"]
    assert [step["uses"] for step in status["steps"]][1] == "helm-set-image"
    (commit,) = repository.promotions(DEV)
    assert repository.git("diff", "--name-only", f"{commit.sha}~", commit.sha) == f"{dev}/values.yaml"
    assert repository.read(f"{dev}/values.yaml") == VALUES.replace("1.0.0", "1.1.0")

    status = await reached(world, "Verified", "Failed", in_=STAGING)
    assert status["state"] == "Verified", status["message"]
    assert repository.read(f"{staging}/main.tf") == text.replace(f"{IMAGE}:1.0.0", f"{IMAGE}:1.1.0")

    status = await reached(world, "Verified", "Failed", in_=PROD)
    assert status["state"] == "Verified", status["message"]
    (commit,) = repository.promotions(PROD)
    changed = repository.git("diff", "--name-status", f"{commit.sha}~", commit.sha).split("\n")
    assert changed == [f"A\t{prod}/app/values.yaml", f"D\t{prod}/old.json"]
    expected = VALUES.replace("1.0.0", "1.1.0").replace("replicas: 2", "replicas: 3")
    assert repository.read(f"{prod}/app/values.yaml") == expected


async def test_an_image_that_is_not_there_ends_the_promotion_and_nothing_is_pushed(
    world: World, repository: GitRepository
) -> None:
    repository.commit({f"{DIRECTORY}/values.yaml": VALUES.replace("my-app", "guestbok")})
    before = repository.head()
    status = await promote(world, repository, "Failed", "Verified", update={"strategy": "helm"})
    assert status["state"] == "Failed"
    assert f"{DIRECTORY}/values.yaml: image.tag is about ghcr.io/acme/guestbok, not {IMAGE}" in status["message"]
    assert next(found["reason"] for found in status["conditions"] if found["type"] == "Ready") == "NoEffect"
    assert repository.head() == before


async def test_with_a_warning_the_values_that_are_there_are_set(world: World, repository: GitRepository) -> None:
    repository.commit({f"{DIRECTORY}/values.yaml": VALUES})
    values = [{"path": "image.tag"}, {"path": "sidecar.image.tag"}]
    update = {"strategy": "helm", "verifyEffect": "warn", "helm": {"values": values}}
    status = await promote(world, repository, "Verified", "Failed", update=update)
    assert status["state"] == "Verified", status["message"]
    assert repository.read(f"{DIRECTORY}/values.yaml") == VALUES.replace("1.0.0", "1.1.0")
    doubt = f"{DIRECTORY}/values.yaml: sidecar.image.tag: no key 'sidecar' in the document"
    assert doubt in status["steps"][1]["message"]
    (event,) = await world.events("EffectUnknown")
    assert (event["type"], doubt in event["note"]) == ("Warning", True)


async def test_a_chart_takes_its_version_beside_the_image(world: World, repository: GitRepository) -> None:
    application = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
spec:
  source: {repoURL: https://charts.example.com, chart: web, targetRevision: 1.0.0} # moved
"""
    repository.commit({f"{DIRECTORY}/app.yaml": application})
    charts = [{"repository": "https://charts.example.com/", "name": "web", "version": "2.0.0"}]
    images = [{"name": "app", "reference": f"{IMAGE}:1.1.0"}]
    await start_controller(world)
    await deploy(world)
    await world.apply(
        pipeline(repository, environments=[environment(DEV)]),
        bundle(BUNDLE, artifacts={"images": images, "charts": charts}),
    )
    status = await reached(world, "Verified", "Failed")
    assert status["state"] == "Verified", status["message"]
    assert repository.read(f"{DIRECTORY}/app.yaml") == application.replace("1.0.0", "2.0.0")


async def test_a_chart_alone_is_proven_by_a_rollout_and_that_says_so(world: World, repository: GitRepository) -> None:
    wanted = "- {name: web, repository: https://charts.example.com, version: 1.0.0}\n"
    chart = f"apiVersion: v2\nname: app\ndependencies:\n{wanted}"
    repository.commit({f"{DIRECTORY}/Chart.yaml": chart})
    charts = [{"repository": "https://charts.example.com", "name": "web", "version": "2.0.0"}]
    await start_controller(world)
    await deploy(world, image="ghcr.io/acme/unrelated:1")
    health = {"resource": {"name": "my-app"}}
    await world.apply(
        pipeline(repository, environments=[environment(DEV, update={"strategy": "helm"}, health=health)]),
        bundle(BUNDLE, artifacts={"charts": charts}),
    )
    status = await reached(world, "Verified", "Failed")
    assert status["state"] == "Verified", status["message"]
    assert [step["uses"] for step in status["steps"]][1:-3] == ["helm-set-chart"]
    assert repository.read(f"{DIRECTORY}/Chart.yaml") == chart.replace("1.0.0", "2.0.0")
    assert "no image of the Bundle proves" in status["steps"][-1]["message"]
    (commit,) = repository.promotions(DEV)
    assert commit.subject == f"Promote my-app 2.0.0 to {DEV}"
