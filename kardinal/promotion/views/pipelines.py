"""Rows of Pipelines, as `kardinal get pipelines` lists them (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kardinal.objects import JsonObject
from kardinal.promotion.api import Bundle, Pipeline
from kardinal.promotion.api.image import bundle_versions
from kardinal.promotion.api.names import freeze_name
from kardinal.promotion.views.bundles import last_verified, newest_first, pipeline_of

__all__ = ["PipelineLine", "pipeline_lines"]

_PROBLEMS = ("Ignored", "SharedPath")
"""Conditions of a Pipeline that exist only if something is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineLine:
    """One Pipeline with the version that each environment was verified with."""

    name: str
    paused: bool
    ready: str
    """The status of the condition Ready: `True`, `False`, or `Unknown` without the condition."""
    verified: Mapping[str, str]
    """The versions that were Verified last, by environment, for example `{"dev": "v2", "prod": ""}`."""
    created: datetime | None
    message: str
    """The messages of all conditions that report a problem; without a problem the message of Ready."""


def pipeline_lines(
    pipelines: Iterable[Pipeline], *, bundles: Iterable[Bundle], gates: Iterable[JsonObject]
) -> list[PipelineLine]:
    """Return a row for each Pipeline of a namespace; `bundles` and `gates` are all of that namespace."""
    ordered = newest_first(bundles)
    present = {gate["metadata"]["name"] for gate in gates}
    return [_line(pipeline, ordered, paused=freeze_name(pipeline.metadata.name) in present) for pipeline in pipelines]


def _line(pipeline: Pipeline, bundles: Sequence[Bundle], *, paused: bool) -> PipelineLine:
    ready = pipeline.status.condition("Ready")
    own = [bundle for bundle in bundles if pipeline_of(bundle) == pipeline.metadata.name]
    return PipelineLine(
        name=pipeline.metadata.name,
        paused=paused,
        ready=ready.status if ready else "Unknown",
        verified={each.name: _verified_versions(own, each.name) for each in pipeline.spec.environments},
        created=pipeline.metadata.creation_timestamp,
        message=_message(pipeline),
    )


def _message(pipeline: Pipeline) -> str:
    """Return the messages of the conditions that report a problem; without a problem the message of Ready."""
    found = [pipeline.status.condition(name) for name in ("Ready", "RepositoryReady", *_PROBLEMS)]
    said = [each for each in found if each is not None and each.message]
    wrong = [each for each in said if each.status == "False" or each.type in _PROBLEMS]
    return "; ".join(each.message for each in wrong or said[:1])


def _verified_versions(bundles: Iterable[Bundle], environment: str) -> str:
    found = last_verified(bundles, environment)
    return bundle_versions(found[1].spec.artifacts) if found is not None else ""
