"""Which representation of an object a client asked for.

One object has three: itself, its metadata only, and a row of a table, which is what `kubectl get` prints. Clients
list several in `Accept` in order of preference and name protobuf first; the first that this server has is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from kardinal.localplane.errors import StatusError

__all__ = ["Form", "Representation", "accepts_aggregated_discovery", "negotiate"]


class Form(Enum):
    OBJECT = "object"
    METADATA = "PartialObjectMetadata"
    TABLE = "Table"


@dataclass(frozen=True, slots=True)
class Representation:
    """A form and, for the two that have one, the version of meta.k8s.io it is written in."""

    form: Form = Form.OBJECT
    version: str = "v1"


_FORMS = {
    "Table": Form.TABLE,
    "PartialObjectMetadata": Form.METADATA,
    "PartialObjectMetadataList": Form.METADATA,
}


@lru_cache(maxsize=256)
def negotiate(accept: str) -> Representation:
    """The first acceptable representation; 406 when there is none."""
    for media_type, parameters in _media_types(accept):
        if media_type not in {"application/json", "application/*", "*/*"}:
            continue
        wanted = parameters.get("as")
        if wanted is None:
            return Representation()
        form = _FORMS.get(wanted)
        if form and parameters.get("g") == "meta.k8s.io" and parameters.get("v") in {"v1", "v1beta1"}:
            return Representation(form, parameters["v"])
    raise StatusError(
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json, application/json;as=Table, "
        "application/json;as=PartialObjectMetadata",
    )


def accepts_aggregated_discovery(accept: str) -> bool:
    """Whether the first acceptable discovery document is the aggregated one."""
    for media_type, parameters in _media_types(accept):
        if media_type not in {"application/json", "application/*", "*/*"}:
            continue
        if "as" not in parameters:
            return False
        if (parameters.get("g"), parameters.get("v"), parameters["as"]) == (
            "apidiscovery.k8s.io",
            "v2",
            "APIGroupDiscoveryList",
        ):
            return True
    return False


def _media_types(accept: str) -> list[tuple[str, dict[str, str]]]:
    parsed = []
    for clause in (accept or "*/*").split(","):
        media_type, *parameters = (part.strip() for part in clause.split(";"))
        pairs = (parameter.partition("=") for parameter in parameters)
        parsed.append((media_type.lower(), {key: value for key, _, value in pairs}))
    return parsed
