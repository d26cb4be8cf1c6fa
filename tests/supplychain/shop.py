"""A chain of three runs and a Bundle, whose runs and Bundles are counted while a test makes trouble."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from kardinal.objects import CONFIG_MAP, JsonObject, ResourceType
from kardinal.promotion.kinds import BUNDLE
from tests.supplychain.chains import Chains, blueprint, resource, template, workload
from tests.support.accounts import rule
from tests.support.names import TEAM
from tests.support.world import World

__all__ = [
    "MAY",
    "Made",
    "build_template",
    "bundle_template",
    "identities",
    "is_ready",
    "made",
    "once_each",
    "shop",
    "shop_chain",
    "start",
]

DEV = {"name": "dev"}
MAY = (rule("*", on="configmaps"), rule("get", "create", on="bundles", group="kardinal.io"))
"""The rights that stamping this chain needs."""

RUNS = ("scan", "test", "build")
_ALWAYS: JsonObject = {"alwaysHealthy": {}}


def run_body(run: str, image: str = "shop:$(params.value)$") -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"generateName": f"$(workload.metadata.name)$-{run}-"},
        "data": {"image": image},
    }


def build_template(name: str = "build", image: str = "shop:$(params.value)$") -> JsonObject:
    """Return the template of the run whose image the Bundle has."""
    spec = {"imagePath": "data.image", "lifecycle": "immutable", "healthRule": _ALWAYS}
    return template(name, run_body("build", image), kind="ClusterImageTemplate", **spec)


def bundle_template() -> JsonObject:
    """Return the template of a Bundle that is healthy as soon as it is created."""
    body = {
        "apiVersion": "kardinal.io/v1alpha1",
        "kind": "Bundle",
        "metadata": {"generateName": "$(workload.metadata.name)$-", "labels": {"kardinal.io/pipeline": "shop"}},
        "spec": {"artifacts": {"images": [{"reference": "$(image)$"}]}},
    }
    return template("bundle", body, kind="ClusterTemplate", healthRule=_ALWAYS)


def shop_chain(*, build: JsonObject | None = None, reverse: bool = False) -> tuple[JsonObject, ...]:
    """Return the templates and the blueprint; `build`: the reference of the template of `build`."""
    checks = [
        template(run, run_body(run), kind="ClusterTemplate", lifecycle="immutable", healthRule=_ALWAYS)
        for run in RUNS[:-1]
    ]
    resources = [
        *(resource(run, kind="ClusterTemplate") for run in RUNS[:-1]),
        resource("build", kind="ClusterImageTemplate", templateRef=build or {"name": "build"}),
        resource("bundle", kind="ClusterTemplate", images=[{"name": "image", "resource": "build"}]),
    ]
    if reverse:
        resources.reverse()
    return (*checks, build_template(), bundle_template(), blueprint(*resources, serviceAccountRef=DEV))


def shop(value: str = "a", name: str = "web", **labels: str) -> JsonObject:
    """Return a Workload whose runs and Bundle have an image of this tag."""
    return workload(name, labels={"type": "web", **labels}, params=[{"name": "value", "value": value}])


async def start(chains: Chains, *owners: JsonObject) -> None:
    """Let the owners be stamped by the chain."""
    await chains.account("dev", *MAY)
    await chains.apply(*shop_chain(), *(owners or (shop(),)))


@dataclass(frozen=True)
class Made:
    """All runs and Bundles: kind, name and uid of each, and how many there are of each kind and image."""

    objects: frozenset[tuple[str, str, str]]
    images: Counter[tuple[str, str]]


async def made(world: World) -> Made:
    """Return the runs and Bundles that are there at this moment."""
    runs = await world.objects(CONFIG_MAP, TEAM, labels="carto.run/resource-name")
    bundles = await world.objects(BUNDLE, TEAM)
    images = Counter(("ConfigMap", str(each["data"]["image"])) for each in runs)
    images.update(("Bundle", str(each["spec"]["artifacts"]["images"][0]["reference"])) for each in bundles)
    return Made(frozenset(_identity(each) for each in [*runs, *bundles]), images)


async def identities(world: World, *kinds: ResourceType) -> frozenset[tuple[str, str, str]]:
    """Return kind, name and uid of all objects of some kinds."""
    return frozenset([_identity(each) for kind in kinds for each in await world.objects(kind, TEAM)])


def _identity(obj: JsonObject) -> tuple[str, str, str]:
    return obj["kind"], obj["metadata"]["name"], obj["metadata"]["uid"]


def once_each(*values: str) -> Counter[tuple[str, str]]:
    """Return the runs and Bundles of a Workload that had these values, one after another."""
    images: Counter[tuple[str, str]] = Counter()
    for value in values:
        images.update({("ConfigMap", f"shop:{value}"): len(RUNS), ("Bundle", f"shop:{value}"): 1})
    return images


def is_ready(generation: int) -> Callable[[JsonObject], bool]:
    """Return whether an owner is Ready in a generation."""

    def accepts(owner: JsonObject) -> bool:
        status = owner.get("status") or {}
        found = {each["type"]: each["status"] for each in status.get("conditions") or ()}
        return status.get("observedGeneration") == generation and found.get("Ready") == "True"

    return accepts
