"""The state of the environments of one Pipeline, so that only what changed is rendered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kardinal.api.pipeline import Environment
from kardinal.git import Subscription, TreeView
from kardinal.runtime import ResourceRef
from kardinal_local.simulator.inputs import Inputs, find_inputs, unchanged
from kardinal_local.simulator.kustomization import Rendered, RenderError
from kardinal_local.simulator.placement import Item

__all__ = ["Known", "Stale", "State"]


@dataclass(frozen=True, slots=True)
class Stale:
    """An environment that has to be rendered."""

    environment: str
    path: str
    inputs: Inputs | None


@dataclass(slots=True)
class Known:
    """The last rendering of one environment.

    `checked` is the commit up to which it would give the same, `commit` the one that `items` are of. After a failure
    `items` are those of before, which stay applied. `told` was told of a failure and not yet of its end; `untold` is
    set when this rendering failed and that was not said.
    """

    path: str
    inputs: Inputs | None
    checked: str
    commit: str
    items: Sequence[Item] = ()
    failure: str | None = None
    unknown: Sequence[str] = ()
    """The fields of the kustomization that were not understood."""
    not_applied: Sequence[str] = ()
    """The kinds of objects that are not applied."""
    told: ResourceRef | None = None
    untold: bool = False

    def current(self, tree: TreeView, commit: str, path: str) -> bool:
        """Return whether rendering `path` of `commit` would give the same again."""
        if self.path != path:
            return False
        if self.checked != commit and (self.inputs is None or not unchanged(tree, self.inputs)):
            return False
        self.checked = commit
        return True


@dataclass(slots=True)
class State:
    """The memory of the simulator for one Pipeline.

    `applied` has the digest of each object by namespace and kind/name, `noted` what was said of where objects go.
    """

    url: str = ""
    subscription: Subscription | None = None
    known: dict[str, Known] = field(default_factory=dict)
    applied: dict[tuple[str, str], str] = field(default_factory=dict)
    noted: set[str] = field(default_factory=set)

    def checked(self, commit: str, environments: Sequence[Environment]) -> bool:
        """Return whether exactly these environments were looked at in `commit`."""
        paths = {name: known.path for name, known in self.known.items() if known.checked == commit}
        return paths == {environment.name: _path(environment) for environment in environments}

    def stale(self, tree: TreeView, commit: str, environments: Sequence[Environment]) -> list[Stale]:
        """Tell which environments have to be rendered from `commit`; forgets those that are no more."""
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
        """Remember what a rendering gave."""
        known = Known(stale.path, stale.inputs, checked=commit, commit=commit)
        before = self.known.get(stale.environment)
        if isinstance(outcome, Rendered):
            known.items = [Item.of(body) for body in outcome.objects]
        else:
            known.failure, known.untold = str(outcome), True
            if before is not None:
                known.items, known.commit = before.items, before.commit
        if before is not None:
            known.told = before.told
        self.known[stale.environment] = known


def _path(environment: Environment) -> str:
    return environment.path or f"environments/{environment.name}"
