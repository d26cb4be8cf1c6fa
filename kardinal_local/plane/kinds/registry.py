"""Register the kinds that are served.

The built-in ones always; those of a CRD from the moment it is Established until it is gone. `revision` moves with
every change, so that what is derived from the registry (discovery, OpenAPI documents) knows when it is stale.
"""

from __future__ import annotations

from collections.abc import Iterable

from kardinal_local.plane.kinds.kind import Kind

__all__ = ["Registry"]


class Registry:
    """Kinds by the three ways in which they are asked for."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self.revision = 0
        self._paths: dict[tuple[str, str, str], Kind] = {}
        for kind in kinds:
            self.add(kind)

    def add(self, kind: Kind) -> None:
        self._paths[(kind.group, kind.version, kind.plural)] = kind
        self.revision += 1

    def remove(self, group: str, plural: str) -> None:
        """Stop serving every version of a resource."""
        for path in [path for path in self._paths if path[0] == group and path[2] == plural]:
            del self._paths[path]
        self.revision += 1

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        return self._paths.get((group, version, plural))

    def named(self, api_version: str, kind: str) -> Kind | None:
        """The kind an ownerReference or a manifest speaks of."""
        return next(
            (found for found in self._paths.values() if (found.api_version, found.kind) == (api_version, kind)), None
        )

    def stored(self, storage: str) -> Kind | None:
        """The kind in whose form the objects of a collection are kept."""
        return next(
            (kind for kind in self._paths.values() if kind.storage == storage and (kind.view is None or kind.view.own)),
            None,
        )

    def kinds(self) -> list[Kind]:
        return list(self._paths.values())

    def groups(self) -> dict[str, dict[str, list[Kind]]]:
        """group -> version -> kinds, in the order in which they appeared."""
        groups: dict[str, dict[str, list[Kind]]] = {}
        for kind in self._paths.values():
            groups.setdefault(kind.group, {}).setdefault(kind.version, []).append(kind)
        return groups
