"""The JSON document of a status, for programs (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kardinal.cli.output import one_line
from kardinal.promotion.views.advice import next_steps
from kardinal.promotion.views.environments import EnvironmentState
from kardinal.promotion.views.gates import GateLine
from kardinal.promotion.views.status import StatusView

__all__ = ["document_of"]


def document_of(view: StatusView) -> dict[str, Any]:
    """Return the document that `kardinal status -o json` prints."""
    return {
        "pipeline": view.pipeline,
        "namespace": view.namespace,
        "bundle": view.bundle.metadata.name if view.bundle is not None else None,
        "version": view.version or None,
        "phase": view.phase or None,
        "message": view.message,
        "environments": [_environment(each, view.runs) for each in view.environments],
        "gates": [_gate(gate) for gate in view.gates],
        "holds": [{"environment": hold.environment or None, "message": one_line(hold.message)} for hold in view.holds],
        "pullRequests": [
            {"environment": each.environment, "number": each.number, "url": each.url, "why": one_line(each.why) or None}
            for each in view.pull_requests
        ],
        "otherBundles": list(view.others),
        "notes": list(map(one_line, view.notes)),
        "next": [{"command": step.command, "purpose": step.purpose} for step in next_steps(view)],
    }


def _environment(environment: EnvironmentState, runs: Mapping[str, str]) -> dict[str, Any]:
    return {
        "name": environment.name,
        "state": environment.state,
        "health": environment.health or None,
        "message": environment.message,
        "runs": runs.get(environment.name),
        "step": environment.progress or None,
        "since": environment.since.isoformat() if environment.since else None,
    }


def _gate(gate: GateLine) -> dict[str, Any]:
    return {
        "name": gate.name,
        "namespace": gate.namespace,
        "scope": gate.scope,
        "environment": gate.environment,
        "result": gate.answer,
        "detail": gate.detail,
        "message": gate.message,
        "opensAt": gate.opens_at.isoformat() if gate.opens_at else None,
    }
