"""The value of each parameter: the template's default, then the blueprint, then the resource, then the owner.

A parameter of a resource takes the place of the blueprint's of that name, as if that were not there. The owner has the
last word unless what stands before it was written as a `value`; where neither blueprint nor resource has one, it may
always. A parameter of an owner that nothing declares is passed on, because a template may read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kardinal_supplychain.api.fields import BlueprintParam, OwnerParam, TemplateParam

__all__ = ["ParamLayer", "ResolvedParam", "resolve_params"]

ParamLayer = Literal["template", "blueprint", "resource", "owner"]


@dataclass(frozen=True, slots=True)
class ResolvedParam:
    """The value of a parameter with the layer that set it; `is_fixed` if an owner cannot replace it."""

    value: Any
    layer: ParamLayer
    is_fixed: bool = False


def resolve_params(
    *,
    template: Iterable[TemplateParam],
    blueprint: Iterable[BlueprintParam],
    resource: Iterable[BlueprintParam],
    owner: Iterable[OwnerParam],
) -> Mapping[str, ResolvedParam]:
    """Return the parameters of one resource for one owner, by name."""
    resolved = {param.name: ResolvedParam(param.default, "template") for param in template}
    resolved |= {param.name: _written(param, "blueprint") for param in blueprint}
    resolved |= {param.name: _written(param, "resource") for param in resource}
    for param in owner:
        before = resolved.get(param.name)
        if before is None or not before.is_fixed:
            resolved[param.name] = ResolvedParam(param.value, "owner")
    return resolved


def _written(param: BlueprintParam, layer: ParamLayer) -> ResolvedParam:
    if "value" in param.model_fields_set:
        return ResolvedParam(param.value, layer, is_fixed=True)
    return ResolvedParam(param.default, layer)
