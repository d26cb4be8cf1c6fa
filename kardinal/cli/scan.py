"""Guess the Pipelines of a GitOps repository from its kustomizations (pure).

A directory with a kustomization that no other kustomization refers to is an environment, if its name or its parent
directory tells so. Directories whose paths differ only in the name of the environment are one application:
`environments/*`, `overlays/*`, `apps/shop/*`, `*/shop`. A person reads the result, so a proposal lists the guesses, and
the facts that could not be guessed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, groupby
from typing import Any, Protocol

from kardinal.cli.guesses import knows_environment, may_be_production, place_of_environment
from kardinal.edits.kustomize.layers import Accumulated, Layers, fields_of
from kardinal.edits.kustomize.manifests import UnreadableManifest, Volume, documents, mapping, text_of
from kardinal.objects.image_reference import ImageReference, ImageReferenceError
from kardinal.promotion.api.names import slug
from kardinal.promotion.kinds import PIPELINE
from kardinal.tree.edit import EditError, Tree

__all__ = ["Origin", "PipelineDraft", "Walkable", "propose"]

_FILES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_WORKLOADS = frozenset(["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"])
_NAMELESS = frozenset(["*", "apps", "environments", "envs", "kustomize", "overlays"])
"""Segments of a path that are no names of applications."""

_PARENTS = frozenset(["environment", "environments", "env", "envs", "overlays", "stages"])
"""Names of directories whose subdirectories are environments."""
_BASES = frozenset(["base", "bases", "common", "shared"])
"""Names of directories that environments share, which are no environments."""
_MOST = 500
"""The maximum number of kustomizations that are read."""


class Walkable(Tree, Protocol):
    """A tree whose files can be listed."""

    def walk(self, directory: str) -> Iterator[Any]: ...


@dataclass(frozen=True, slots=True)
class Origin:
    """The repository that is read, as the Pipelines name it; `provider` is None if the host is unknown.

    `namespace` is the namespace of the Pipelines.
    """

    url: str
    branch: str
    provider: str | None
    namespace: str


@dataclass(slots=True)
class PipelineDraft:
    """A Pipeline that is proposed for one application.

    `guessed` has a sentence for each guess, `unknown` one for each fact that could not be guessed. `images` are the
    repositories of the container images. Note the difference: in the glossary, a proposal is a branch with its pull
    request.
    """

    name: str
    manifest: dict[str, Any] = field(default_factory=dict)
    images: Sequence[str] = ()
    guessed: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Overlay:
    path: str
    environment: str
    namespace: str
    workloads: Sequence[tuple[str, str]]
    """Kind and name of each workload, for example `("Deployment", "shop")`."""
    images: Sequence[str]
    problems: Sequence[str]
    uses: Sequence[str]
    """The other directories that the kustomization reads, such as its base."""


def propose(tree: Walkable, origin: Origin) -> list[PipelineDraft]:
    """Return a proposal for each application; empty if no kustomization is an environment."""
    paths = sorted(set(_kustomized(tree)))[:_MOST]
    overlays = [_read(tree, path) for path in paths]
    bases = {used for overlay in overlays for used in overlay.uses}
    groups: defaultdict[str, list[_Overlay]] = defaultdict(list)
    for overlay in overlays:
        if overlay.path not in bases and _is_environment(overlay):
            groups[_application(overlay)].append(overlay)
    named = _unique({key: _name(key, groups[key], origin) for key in sorted(groups)})
    proposals = [_proposal(name, key, groups[key], origin) for key, name in named.items()]
    charts = sorted({file.path.rpartition("/")[0] or "." for file in tree.walk("") if _is_chart(file.path)})
    if proposals and charts:
        proposals[0].unknown.append(f"the Helm charts in {', '.join(charts)}: they are not read")
    return proposals


def _is_chart(path: str) -> bool:
    return path.rpartition("/")[2] == "Chart.yaml"


def _kustomized(tree: Walkable) -> Iterator[str]:
    for file in tree.walk(""):
        directory, _, name = file.path.rpartition("/")
        if name in _FILES and _kind(tree, file.path) != "Component":
            yield directory


def _kind(tree: Tree, path: str) -> str:
    return text_of(_kustomization(tree, path).get("kind"))


def _kustomization(tree: Tree, path: str) -> Mapping[str, Any]:
    try:
        content = tree.read(path)
        return mapping(next(iter(documents(content or b"", Volume())), None))
    except (UnreadableManifest, EditError):
        return {}


def _read(tree: Tree, path: str) -> _Overlay:
    """Return the workloads and images of one kustomization, as far as they are known without running kustomize."""
    layers = Layers(tree)
    found = Accumulated()
    problems = list[str]()
    try:
        found = layers.kustomization(path, before_images=lambda _: None)
    except (UnreadableManifest, EditError) as error:
        problems.append(str(error))
    except RecursionError:
        problems.append("the manifests are nested too deeply")
    images = dict.fromkeys(filter(None, (_repository(one.text) for one in fields_of(found))))
    workloads = [
        (resource.kind, text_of(mapping(resource.body.get("metadata")).get("name")))
        for resource in found.resources
        if resource.kind in _WORKLOADS
    ]
    top = next((_kustomization(tree, f"{path}/{name}") for name in _FILES if tree.read(f"{path}/{name}")), {})
    return _Overlay(
        path=path,
        environment=_environment(path),
        namespace=text_of(top.get("namespace")),
        workloads=workloads,
        images=list(images),
        problems=[*problems, *dict.fromkeys((*layers.missing, *layers.uncertain))],
        uses=[root for root in layers.roots if root != path],
    )


def _repository(text: str) -> str:
    try:
        return ImageReference.parse(text).repository
    except ImageReferenceError:
        return ""


def _environment(path: str) -> str:
    """Return the segment of a path that names the environment: `apps/prod/shop` → `prod`.

    It is the last segment that is known as an environment, else the last segment.
    """
    segments = path.split("/")
    return next((segment for segment in reversed(segments) if knows_environment(segment)), segments[-1])


def _is_environment(overlay: _Overlay) -> bool:
    """Return whether a directory is an environment, by its own name or the name of its parent directory."""
    above, name, _ = overlay.path.rpartition(overlay.environment)
    if not name or overlay.environment in _BASES:
        return False
    return knows_environment(overlay.environment) or above.rstrip("/").rpartition("/")[2] in _PARENTS


def _application(overlay: _Overlay) -> str:
    """Return the path with a star in place of the environment: `apps/prod/shop` → `apps/*/shop`."""
    segments = overlay.path.split("/")
    index = len(segments) - 1 - segments[::-1].index(overlay.environment)
    return "/".join((*segments[:index], "*", *segments[index + 1 :]))


def _proposal(name: str, key: str, overlays: Sequence[_Overlay], origin: Origin) -> PipelineDraft:
    ordered = sorted(overlays, key=lambda overlay: (place_of_environment(overlay.environment), overlay.environment))
    proposal = PipelineDraft(name)
    proposal.images = list(dict.fromkeys(image for overlay in ordered for image in overlay.images))
    entries = [_entry(proposal, overlay, ordered, origin) for overlay in ordered]
    proposal.manifest = {
        "apiVersion": PIPELINE.api_version,
        "kind": PIPELINE.kind,
        "metadata": {"name": proposal.name, "namespace": origin.namespace},
        "spec": {"git": _git(proposal, origin), "environments": entries},
    }
    _explain(proposal, key, ordered)
    return proposal


def _name(key: str, overlays: Sequence[_Overlay], origin: Origin) -> str:
    """Return the name of an application: of its only workload, else of the directory, else of the repository."""
    names = {name for overlay in overlays for _, name in overlay.workloads}
    if len(names) == 1:
        return slug(names.pop())
    segments = [segment for segment in key.split("/") if segment not in _NAMELESS]
    repository = origin.url.rstrip("/").removesuffix(".git").rpartition("/")[2]
    return slug(segments[-1] if segments else repository) or "app"


def _unique(names: Mapping[str, str]) -> dict[str, str]:
    """Return unique names by key; applications with the same name get the differing directories appended.

    `{"eu/shop/*": "shop", "us/shop/*": "shop"}` → `{"eu/shop/*": "shop-eu", "us/shop/*": "shop-us"}`.
    """
    counts = Counter(names.values())
    found: dict[str, str] = {}
    for key, name in names.items():
        alike = [other.split("/") for other, same in names.items() if same == name and other != key]
        common = set.intersection(*map(set, alike)) if alike else set()
        differing = [part for part in key.split("/") if part != "*" and part not in common]
        wanted = slug("-".join((name, *differing))) if alike else name
        taken = {*found.values(), *(one for one in counts if one != name)}
        numbered = (wanted if number == 1 else f"{wanted}-{number}" for number in count(1))
        found[key] = next(one for one in numbered if one not in taken)
    return found


def _git(proposal: PipelineDraft, origin: Origin) -> dict[str, Any]:
    git = {"url": origin.url, "branch": origin.branch, "provider": origin.provider or "git"}
    if origin.provider is None:
        proposal.unknown.append(
            "git.provider: the host's name does not tell; plain git makes no pull requests, so that the Pipeline is "
            "not Ready. Set it to github, gitlab, gitea or forgejo"
        )
    if origin.provider != "local":
        proposal.unknown.append(
            "git.secretRef: promotions need a credential. Make a Secret (docs/installation.md) and name it here"
        )
    return git


def _entry(proposal: PipelineDraft, overlay: _Overlay, ordered: Sequence[_Overlay], origin: Origin) -> dict[str, Any]:
    name = slug(overlay.environment)
    entry: dict[str, Any] = {"name": name, "path": overlay.path}
    ranks = sorted({place_of_environment(each.environment) for each in ordered})
    place = ranks.index(place_of_environment(overlay.environment))
    if len(ranks) < len(ordered) and place:
        last = ranks[place - 1]
        before = [slug(each.environment) for each in ordered if place_of_environment(each.environment) == last]
        entry["dependsOn"] = before
    elif len(ranks) < len(ordered):
        entry["dependsOn"] = []
    if may_be_production(overlay.environment) or (place == len(ranks) - 1 and len(ranks) > 1):
        entry["approval"] = "pr-review"
    resource = _resource(proposal, overlay, name)
    if resource:
        entry["health"] = {"resource": resource}
    return entry


def _resource(proposal: PipelineDraft, overlay: _Overlay, environment: str) -> dict[str, str]:
    """Return `health.resource` of an environment: name and namespace of its Deployment, unless they are the defaults.

    The defaults are the name of the Pipeline and the name of the environment.
    """
    resource = {}
    names = [name for kind, name in overlay.workloads if kind == "Deployment"]
    if len(names) == 1 and names[0] != proposal.name:
        resource["name"] = names[0]
    if overlay.namespace and overlay.namespace != environment:
        resource["namespace"] = overlay.namespace
    if not overlay.namespace:
        proposal.unknown.append(
            f"environments[{environment}].health.resource.namespace: {overlay.path} names no namespace; it is taken to "
            f"be {environment}"
        )
    return resource


def _explain(proposal: PipelineDraft, key: str, ordered: Sequence[_Overlay]) -> None:
    ranked = groupby(ordered, key=lambda overlay: place_of_environment(overlay.environment))
    names = " -> ".join(" and ".join(slug(each.environment) for each in same) for _, same in ranked)
    proposal.guessed.append(f"environments and their order, from the directories {key}: {names}")
    reviewed = [entry["name"] for entry in proposal.manifest["spec"]["environments"] if "approval" in entry]
    if reviewed:
        proposal.guessed.append(f"approval: a pull request for {', '.join(reviewed)}, none for others")
    workloads = dict.fromkeys(f"{kind} {name}" for overlay in ordered for kind, name in overlay.workloads)
    if workloads:
        proposal.guessed.append(f"what runs: {', '.join(workloads)}")
    if proposal.images:
        proposal.guessed.append(f"images: {', '.join(proposal.images)}")
    else:
        proposal.unknown.append("images: no container was found in what these directories render")
    for overlay in ordered:
        proposal.unknown += (f"{overlay.path}: {problem}" for problem in overlay.problems)
    unordered = [each.environment for each in ordered if not knows_environment(each.environment)]
    if unordered:
        proposal.unknown.append(f"the place of {', '.join(unordered)} in the order: set dependsOn")
