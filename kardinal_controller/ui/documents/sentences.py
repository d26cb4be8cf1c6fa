"""The answer to "why is it not further?": the sentence of `kardinal explain`, with what to do and until when.

The text is never composed anew. The row of a Pipeline has the sentence of the environment that needs most attention,
after its name; else it has a sentence of `kardinal status` about the Pipeline or the Bundle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from kardinal.objects.text import cut
from kardinal.promotion.views.advice import next_steps
from kardinal.promotion.views.environments import NO_BUNDLE, EnvironmentState
from kardinal.promotion.views.explanation import result_of
from kardinal.promotion.views.gates import GateLine
from kardinal.promotion.views.missing import no_bundle
from kardinal.promotion.views.states import UNDER_WAY, command_of, no_longer_healthy
from kardinal.promotion.views.status import HoldReason, pipeline_problems
from kardinal_controller.ui.documents.facts import PipelineFacts
from kardinal_controller.ui.documents.links import pull_request_link
from kardinal_controller.ui.documents.tones import environment_mark, mark
from kardinal_controller.ui.model import Need, Sentence, Tone

__all__ = ["environment_sentence", "gate_sentence", "hold_before", "pipeline_sentence", "position"]

_DETAIL = 1024
"""The most characters of the second line of a sentence."""

_HOLDS: Final[Mapping[str, Tone]] = {"freeze": "you", "hold": "you", "gate": "held", "problem": "warn"}
"""The tone of each kind of hold."""
_MOVING: Final = ("Promoting", "HealthChecking", "WaitingForMerge", "Pending")
_ENDED_BADLY: Final = ("Failed", "SkipDenied")
_AT_REST: Final = ("Verified", "Failed", "Skipped", "NotTargeted", "NotReached", "Superseded", NO_BUNDLE)


def pipeline_sentence(facts: PipelineFacts) -> tuple[Need, Sentence]:
    """Return the attention that a Pipeline needs, and why."""
    objects = facts.objects
    view = facts.view
    frozen = hold_before(facts, "")
    if frozen is not None:
        return "person", Sentence(text=frozen.message, tone="you", detail=frozen.purpose, command=frozen.command)
    for problem in pipeline_problems(objects.pipeline):
        command = command_of("Bundle", "Available", pipeline=facts.pipeline)
        return "failed", Sentence(text=problem, tone="bad", command=command)
    for need, names in _by_need(facts):
        for name in names:
            sentence = environment_sentence(facts, name)
            if sentence is not None:
                return need, sentence.model_copy(update={"text": f"{name}: {sentence.text}"})
    for name in facts.states:
        # What runs there is of an older Bundle than the one that is shown.
        ill = facts.running_state(name)
        if ill is not None and ill.health:
            command = command_of("Health", ill.health, pipeline=facts.pipeline, environment=name)
            text = f"{name}: {no_longer_healthy(ill.message)}"
            return "failed", Sentence(text=text, tone="warn", command=command)
    first = next(iter(next_steps(view)), None)
    further = first.command if first is not None and first.command.startswith("kardinal ") else None
    if view.bundle is None:
        return "rest", Sentence(text=no_bundle(facts.pipeline).message, tone="rest", command=further)
    tone = mark("Bundle", view.phase).tone
    text = f"{view.phase}: {view.message}" if view.message else view.phase
    return _need_of(view.phase), Sentence(text=text, tone="rest" if tone == "ok" else tone, command=further)


def environment_sentence(facts: PipelineFacts, environment: str) -> Sentence | None:
    """Return why the Bundle that is shown is not Verified in an environment; None if it is, and is healthy."""
    state = facts.states[environment]
    bundle = facts.bundle
    if bundle is None or (state.state == "Verified" and not state.health):
        return None
    gates = facts.gates.get(environment, ())
    hold = hold_before(facts, environment) if state.state not in _AT_REST else None
    frozen = hold_before(facts, "") if state.state not in _AT_REST else None
    held = frozen or hold
    pull = facts.pull_request(environment)
    states = tuple(facts.states.values())
    unserved = facts.no_agent_since(environment) is not None
    tone = environment_mark(state).tone
    return Sentence(
        text=result_of(facts.objects, bundle, state, states=states, gates=gates),
        tone="warn" if unserved else _HOLDS[held.kind] if held is not None else tone,
        detail=_detail(facts, state, gates, hold) or None,
        command=_command(facts, state, held) or None,
        link=pull_request_link(pull.url, pull.number) if pull is not None else None,
        until=_until(state, gates),
    )


def gate_sentence(facts: PipelineFacts, gate: GateLine) -> Sentence:
    """Return the verdict of a gate with its reason."""
    command = ""
    if gate.answer != "PASS":
        command = command_of("Gate", gate.answer, pipeline=facts.pipeline, environment=gate.environment)
    return Sentence(
        text=f"{gate.answer}: {gate.detail}",
        tone=mark("Gate", gate.answer).tone,
        detail=gate.message or None,
        command=command or None,
        until=gate.opens_at,
    )


def hold_before(facts: PipelineFacts, environment: str) -> HoldReason | None:
    """Return the hold of one environment that applies to the Bundle that is shown; of "", the freeze."""
    for hold in facts.view.holds:
        if hold.environment == environment and not _lets_through(facts, hold):
            return hold
    return None


def position(state: EnvironmentState) -> tuple[str, int, int] | None:
    """Return the step of the sequence that is executed, its number from 1, and the length of the sequence."""
    step = state.step
    if not state.progress or step is None or step.status.current_step is None:
        return None
    return step.spec.steps[step.status.current_step].uses, step.status.current_step + 1, len(step.spec.steps)


def _by_need(facts: PipelineFacts) -> list[tuple[Need, list[str]]]:
    """Return the environments by the attention that they need, those that need most first."""
    found: dict[Need, list[str]] = {"person": [], "failed": [], "held": [], "moving": []}
    for name in facts.upstreams:
        if (need := _need(facts, name)) is not None:
            found[need].append(name)
    return list(found.items())


def _need(facts: PipelineFacts, name: str) -> Need | None:
    state = facts.states[name]
    mark_of_state = environment_mark(state)
    is_over = facts.bundle is None or facts.view.phase in ("Superseded", "Verified")
    hold = hold_before(facts, name) if state.state not in _AT_REST else None
    if state.health or state.state == "Failed" or facts.no_agent_since(name) is not None:
        return "failed"
    if state.state == "WaitingForMerge" and facts.needs_merge(name):
        return "person"
    if hold is not None and not is_over:
        if hold.kind == "problem":
            return "failed"
        return "person" if hold.kind == "hold" and _is_next(facts, name) else "held"
    if mark_of_state.tone == "held":
        return "held"
    return "moving" if state.state in _MOVING and not is_over else None


def _need_of(phase: str) -> Need:
    """Return the attention that a Bundle needs by its phase alone."""
    if phase == "WaitingForGraph":
        return "person"
    return "failed" if phase in _ENDED_BADLY else "moving" if phase in UNDER_WAY else "rest"


def _is_next(facts: PipelineFacts, name: str) -> bool:
    """Return whether everything before an environment is Verified, so that its own hold is what keeps it."""
    return all(facts.states[each].state in ("Verified", "Skipped", "NotTargeted") for each in facts.upstreams[name])


def _lets_through(facts: PipelineFacts, hold: HoldReason) -> bool:
    """Return whether a hold of a rollback lets the Bundle that is shown through."""
    kept = dict(facts.objects.held).get(hold.environment) if hold.kind == "hold" else None
    bundle = facts.bundle
    return kept is not None and bundle is not None and kept["spec"].get("exceptBundle") == bundle.metadata.name


def _detail(facts: PipelineFacts, state: EnvironmentState, gates: Sequence[GateLine], hold: HoldReason | None) -> str:
    pull = facts.pull_request(state.name)
    if pull is not None and pull.why:
        return pull.why
    if hold is not None:
        return hold.purpose
    if (found := position(state)) is not None:
        uses, index, length = found
        return f"step {index} of {length} · {uses}"
    closed = [gate for gate in gates if gate.answer == "FAIL"]
    if state.held_by:
        return cut("; ".join(f"{gate.name}: {gate.detail}" for gate in closed), _DETAIL)
    return ""


def _command(facts: PipelineFacts, state: EnvironmentState, hold: HoldReason | None) -> str:
    if hold is not None:
        return hold.command
    if facts.no_agent_since(state.name) is not None and state.step is not None and state.step.spec.shard:
        return f"kardinal-agent --shard={state.step.spec.shard}"
    pull = facts.pull_request(state.name)
    if pull is not None and not pull.local:
        return ""
    values = {
        "pipeline": facts.pipeline,
        "environment": state.name,
        "bundle": facts.bundle.metadata.name if facts.bundle is not None else "",
        "number": str(pull.number) if pull is not None else "",
    }
    found = environment_mark(state)
    return command_of(found.kind, found.name, **values)


def _until(state: EnvironmentState, gates: Sequence[GateLine]) -> datetime | None:
    """Return when the environment goes on by itself: a gate opens, a soak ends, or a failed step is tried again."""
    if state.step is not None and not state.step.status.has_ended and state.step.status.retry is not None:
        return state.step.status.retry.next_at
    moments = [gate.opens_at for gate in gates if gate.answer == "FAIL" and gate.opens_at is not None]
    # Waiting, and not Blocked: time alone opens each of the gates.
    return max(moments, default=None) if state.state == "Waiting" and state.held_by else None
