"""Choose the representation and the encoding of a response by the Accept header.

One object has three forms: itself, its metadata only, and a row of a table, which is what `kubectl get` prints. Clients
list what they can read by preference, and the first acceptable entry wins: the reason why one that prefers protobuf is
answered in JSON, which it lists as well.

On the real server two layers judge the header. The router in front of built-in kinds wants one of its media types to
stand there literally, and complains in its own words; behind it, and alone for custom kinds, wildcards are understood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from kardinal_local.plane.errors import StatusError

__all__ = ["JSON", "PROTOBUF", "YAML", "Form", "Representation", "accepts_aggregated_discovery", "negotiate"]

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
_WRITTEN = (JSON, YAML)
_SUPPORTED = (JSON, YAML, PROTOBUF)
_STREAMED = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")


class Form(Enum):
    OBJECT = "object"
    METADATA = "PartialObjectMetadata"
    METADATA_LIST = "PartialObjectMetadataList"
    TABLE = "Table"


@dataclass(frozen=True, slots=True)
class Representation:
    """A form, the version of meta.k8s.io that those other than the object are written in, and the encoding."""

    form: Form = Form.OBJECT
    version: str = "v1"
    encoding: str = JSON
    pretty: bool = False


@dataclass(frozen=True, slots=True)
class _Clause:
    """One entry of an Accept header."""

    media_type: str
    parameters: dict[str, str]
    quality: float

    def matches(self, media_type: str) -> bool:
        kind, _, subtype = self.media_type.partition("/")
        return self.media_type in {media_type, "*/*"} or (subtype == "*" and media_type.startswith(f"{kind}/"))

    def representation(self, encoding: str) -> Representation | None:
        """What it asks for in `encoding`; None when that cannot be had."""
        parameters = self.parameters
        if parameters.get("stream", "") not in {"", "watch"} or parameters.get("sv"):
            return None
        pretty = parameters.get("pretty") == "1"
        if not parameters.keys() & {"as", "g", "v"}:
            return Representation(encoding=encoding, pretty=pretty)
        form, version = _FORMS.get(parameters.get("as", "")), parameters.get("v", "")
        if form is None or parameters.get("g") != "meta.k8s.io" or version not in {"v1", "v1beta1"}:
            return None
        return Representation(form, version, encoding, pretty)


_FORMS = {form.value: form for form in Form if form is not Form.OBJECT}


@lru_cache(maxsize=256)
def negotiate(accept: str, *, routed: bool = False, listing: bool = False, watching: bool = False) -> Representation:
    """The first acceptable representation; 406 when there is none.

    `routed`: the path is one of a built-in kind, whose router looks first; `listing`: of a whole collection.
    """
    if not accept:
        return Representation()
    clauses = _clauses(accept)
    if routed and not any(clause.media_type in {"*/*", *_SUPPORTED} for clause in clauses):
        available = ", ".join((*_SUPPORTED, *(_STREAMED if listing or watching else ())))
        message = f"406: Not Acceptable\n\nAvailable representations: {available}"
        raise StatusError(406, "NotAcceptable", message, details={})
    for clause in clauses:
        for encoding in _WRITTEN:
            if clause.matches(encoding) and (found := clause.representation(encoding)) is not None:
                if watching and encoding != JSON:
                    raise _not_acceptable(_STREAMED)
                return found
    raise _not_acceptable(_SUPPORTED)


@lru_cache(maxsize=256)
def accepts_aggregated_discovery(accept: str) -> bool:
    """Whether the first acceptable discovery document is the aggregated one; 406 when there is none at all."""
    for clause in _clauses(accept or "*/*"):
        if clause.matches(JSON):
            if "as" not in clause.parameters:
                return False
            if tuple(map(clause.parameters.get, "gv")) == ("apidiscovery.k8s.io", "v2") and (
                clause.parameters["as"] == "APIGroupDiscoveryList"
            ):
                return True
    raise _not_acceptable(_SUPPORTED)


def _clauses(accept: str) -> list[_Clause]:
    """The entries of the header, the most wanted first."""
    found = []
    for clause in accept.split(","):
        media_type, *parameters = (part.strip() for part in clause.split(";"))
        pairs = {key.strip(): value.strip() for key, _, value in (one.partition("=") for one in parameters)}
        found.append(_Clause(media_type, pairs, _quality(pairs.pop("q", ""))))
    return sorted(found, key=lambda clause: (-clause.quality, clause.media_type.count("*")))


def _quality(text: str) -> float:
    try:
        return float(text or 1)
    except ValueError:
        return 1.0


def _not_acceptable(supported: Sequence[str]) -> StatusError:
    message = f"only the following media types are accepted: {', '.join(supported)}"
    return StatusError(406, "NotAcceptable", message)
