"""Remember the last rendering of each environment of a Pipeline, so that only changed environments are rendered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kardinal.git import BranchSubscription, TreeView
from kardinal.promotion.api.pipeline import Environment
from kardinal.runtime import ResourceRef
from kardinal_local.simulator.inputs import Inputs, find_inputs, unchanged
from kardinal_local.simulator.kustomization import Rendered, RenderError
from kardinal_local.simulator.placement import RenderedItem

__all__ = ["Known", "PipelineState", "Stale"]


@dataclass(frozen=True, slots=True)
class Stale:
    """An environment to be rendered, with its directory and the inputs of the rendering (None: unknown)."""

    environment: str
    path: str
    inputs: Inputs | None


@dataclass(slots=True)
class Known:
    """The last rendering of one environment.

    `items` are the rendered objects, and `commit` is the commit that they were rendered from. `checked` is the latest
    commit whose rendering would give the same objects. After a failure, `items` and `commit` are those of the rendering
    before, which stay applied. `told` is the object with an Event about a failure that is not resolved yet; `untold` is
    True if this rendering failed and no Event about it was written yet.
    """

    path: str
    inputs: Inputs | None
    checked: str
    commit: str
    items: Sequence[RenderedItem] = ()
    failure: str | None = None
    unknown: Sequence[str] = ()
    """The fields of the kustomization that the built-in reader does not support: `kustomization.yaml: patches`."""
    not_applied: Sequence[str] = ()
    """The kinds of rendered objects that the simulator does not apply, for example `Ingress`."""
    told: ResourceRef | None = None
    untold: bool = False

    def current(self, tree: TreeView, commit: str, path: str) -> bool:
        """Return whether rendering `path` of `commit` would give the same objects, and if so set `checked`."""
        if self.path != path:
            return False
        if self.checked != commit and (self.inputs is None or not unchanged(tree, self.inputs)):
            return False
        self.checked = commit
        return True


@dataclass(slots=True)
class PipelineState:
    """The memory of the simulator for one Pipeline.

    `known` has the last rendering by environment. `applied` has the digest of each applied object by namespace and
    kind/name, for example `("dev", "Deployment/shop")`. `noted` has the notes about namespaces that were written as
    Events. `subscription` watches the local repository at `url`.
    """

    url: str = ""
    subscription: BranchSubscription | None = None
    known: dict[str, Known] = field(default_factory=dict)
    applied: dict[tuple[str, str], str] = field(default_factory=dict)
    noted: set[str] = field(default_factory=set)

    def checked(self, commit: str, environments: Sequence[Environment]) -> bool:
        """Return whether all of these environments, and no others, have been checked against `commit`."""
        paths = {name: known.path for name, known in self.known.items() if known.checked == commit}
        return paths == {environment.name: _path(environment) for environment in environments}

    def stale(self, tree: TreeView, commit: str, environments: Sequence[Environment]) -> list[Stale]:
        """Return the environments to be rendered from `commit`, and forget the removed environments."""
        for name in self.known.keys() - {environment.name for environment in environments}:
            del self.known[name]
        found = []
        for environment in environments:
            path = _path(environment)
            known = self.known.get(environment.name)
            if known is None or not known.current(tree, commit, path):
                found.append(Stale(environment.name, path, find_inputs(tree, path)))
        return found

    def note(self, stale: Stale, commit: str, outcome: Rendered | RenderError) -> None:
        """Record the result of a rendering: the objects, or the error."""
        known = Known(stale.path, stale.inputs, checked=commit, commit=commit)
        before = self.known.get(stale.environment)
        if isinstance(outcome, Rendered):
            known.items = [RenderedItem.of(body) for body in outcome.objects]
        else:
            known.failure = str(outcome)
            known.untold = True
            if before is not None:
                known.items = before.items
                known.commit = before.commit
        if before is not None:
            known.told = before.told
        self.known[stale.environment] = known


def _path(environment: Environment) -> str:
    return environment.path or f"environments/{environment.name}"
