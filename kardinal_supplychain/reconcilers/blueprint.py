"""Write the conditions of blueprints: whether their templates are there, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kardinal.clock import Clock
from kardinal.objects import JsonObject, Key, ResourceType, key_of
from kardinal.runtime import Result, Source, StatusWriter, Watch
from kardinal.runtime.predicates import deleted, metadata_changed
from kardinal_supplychain.realize.conditions import with_conditions
from kardinal_supplychain.reconcilers.definitions import BY_TEMPLATE, Definitions

__all__ = ["BlueprintReconciler"]

_spec_changed = metadata_changed("uid", "generation")


class BlueprintReconciler:
    """Reconcile the blueprints of one kind."""

    def __init__(self, resource: ResourceType, definitions: Definitions, *, status: StatusWriter, clock: Clock) -> None:
        self._resource = resource
        self._definitions = definitions
        self._blueprints = definitions.blueprints[resource]
        self._status = status
        self._clock = clock

    def sources(self) -> Sequence[Source]:
        """Return the changes of the blueprints, and of the templates that they name."""
        return (
            Watch(self._blueprints, when=_spec_changed & ~deleted),
            *(
                Watch(templates, self._users_of, when=_spec_changed)
                for templates in self._definitions.templates.values()
            ),
        )

    async def reconcile(self, key: Key) -> Result:
        obj = self._blueprints.get(None, key.name)
        blueprint = self._definitions.blueprint(self._resource, key.name)
        if obj is None or blueprint is None:
            return Result()
        findings = self._definitions.findings(blueprint)
        before = obj.get("status") or {}
        status = {
            **before,
            "observedGeneration": obj["metadata"]["generation"],
            "conditions": with_conditions(before.get("conditions") or (), findings, now=self._clock.now()),
        }
        await self._status.write(self._resource, obj, status)
        return Result()

    def _users_of(self, template: JsonObject) -> Iterable[Key]:
        name = f"{template['kind']}/{template['metadata']['name']}"
        return map(key_of, self._blueprints.by_index(BY_TEMPLATE, name))
