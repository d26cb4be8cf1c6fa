"""The lines of a `StatusView`: a screen for a terminal, and for other outputs a line for each change (pure).

Names, states and versions are never truncated. Environments are printed side by side, and continue below if the
terminal is too narrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import zip_longest

from kardinal.cli.output import one_line, span, state_text, styled
from kardinal.cli.table import GAP, INDENT, text_width, wrapped
from kardinal.promotion.views.advice import next_steps
from kardinal.promotion.views.environments import EnvironmentState
from kardinal.promotion.views.gates import GateLine
from kardinal.promotion.views.states import UNDER_WAY, no_longer_healthy
from kardinal.promotion.views.status import StatusView

__all__ = ["change_lines", "screen"]

_WIDEST = 100
"""The width of prose in columns if the output is not a terminal."""


def screen(view: StatusView, *, now: datetime, width: int | None) -> list[str]:
    """Return the lines of a view for a terminal of `width` columns, or None if the output is not a terminal."""
    room = width or _WIDEST
    sections = [
        list(_heading(view, now, room)),
        *_strips(view, now, room),
        list(_waiting(view, now, room)),
        list(_next(view, room)),
    ]
    lines: list[str] = []
    for section in filter(None, sections):
        lines += ["", *section] if lines else section
    return lines


def change_lines(before: StatusView | None, after: StatusView) -> list[str]:
    """Return a line for each fact that differs between two views: `dev: Verified`, for example."""
    known = _facts(before) if before is not None else {}
    return [f"{subject}: {text}" for subject, text in _facts(after).items() if known.get(subject) != text]


def _facts(view: StatusView) -> dict[str, str]:
    facts = {f"note {index + 1}": one_line(note) for index, note in enumerate(view.notes)}
    if view.bundle is not None:
        facts[f"Bundle {view.bundle.metadata.name} ({view.version})"] = _sentence(view.phase, view.message)
    for environment in view.environments:
        state = " ".join(filter(None, (environment.state, environment.health, environment.progress)))
        facts[environment.name] = _sentence(state, environment.message)
        for gate in view.gates:
            if gate.environment == environment.name:
                facts[f"{environment.name}, gate {gate.name}"] = _sentence(gate.answer, gate.detail)
    for index, hold in enumerate(view.holds):
        facts[f"hold {index + 1}"] = one_line(hold.message)
    for step in next_steps(view):
        facts[f"next, to {step.purpose}"] = step.command
    return facts


def _sentence(state: str, message: str) -> str:
    return f"{state}: {one_line(message)}" if message else state


def _heading(view: StatusView, now: datetime, room: int) -> Iterator[str]:
    yield f"{styled('PIPELINE', bold=True)}  {view.pipeline}  (namespace {view.namespace})"
    if view.bundle is None:
        yield f"{styled('BUNDLE', bold=True)}    none yet"
    else:
        created = view.bundle.metadata.creation_timestamp
        age = f", {span(now - created)} old" if created else ""
        yield f"{styled('BUNDLE', bold=True)}    {view.bundle.metadata.name}  ({view.version}{age})"
        yield from _labelled("          ", f"{state_text(view.phase)}: {one_line(view.message)}", room)
    for other in view.others:
        yield f"          also under way: {other}"
    for note in view.notes:
        yield from _labelled(f"{styled('NOTE', bold=True)}      ", one_line(note), room)


def _strips(view: StatusView, now: datetime, room: int) -> Iterator[list[str]]:
    """Yield the lines of the environments in blocks, each with as many environments side by side as fit."""
    linear = _is_linear(view.environments)
    strip: list[Sequence[str]] = []
    for environment in view.environments:
        block = list(_environment(environment, view.runs, now, linear=linear))
        if strip and sum(map(_block_width, (*strip, block))) + len(GAP) * len(strip) + 2 > room:
            yield _beside(strip)
            strip = []
        strip.append(block)
    if strip:
        yield _beside(strip)


def _environment(
    environment: EnvironmentState, runs: Mapping[str, str], now: datetime, *, linear: bool
) -> Iterator[str]:
    version = runs.get(environment.name, "")
    yield styled(environment.name, bold=True)
    yield version or "-"
    yield state_text(environment.state)
    if environment.health:
        yield state_text(environment.health)
    if environment.since is not None:
        yield span(now - environment.since)
    if environment.progress:
        yield environment.progress
    if not linear and environment.upstreams:
        yield f"after {', '.join(environment.upstreams)}"


def _is_linear(environments: Sequence[EnvironmentState]) -> bool:
    before = [(), *((each.name,) for each in environments)]
    return all(each.upstreams in ((), upstream) for each, upstream in zip(environments, before, strict=False))


def _beside(blocks: Sequence[Sequence[str]]) -> list[str]:
    wide = [_block_width(block) for block in blocks]
    return [
        (
            "  " + GAP.join(cell + " " * (columns - text_width(cell)) for cell, columns in zip(line, wide, strict=True))
        ).rstrip()
        for line in zip_longest(*blocks, fillvalue="")
    ]


def _block_width(block: Iterable[str]) -> int:
    return max(map(text_width, block))


def _waiting(view: StatusView, now: datetime, room: int) -> Iterator[str]:
    """Yield the holds, and for each environment its pull request, its message and its gates."""
    for hold in view.holds:
        yield from _labelled(f"{hold.environment or view.pipeline}: ", f"held: {one_line(hold.message)}", room)
    pulls = {pull.environment: pull for pull in view.pull_requests}
    for environment in view.environments:
        gates = [gate for gate in view.gates if gate.environment == environment.name]
        if environment.name in pulls:
            pull = pulls[environment.name]
            yield from _labelled(
                f"{environment.name}: ", f"pull request #{pull.number} waits for its merge: {pull.url}", room
            )
            if pull.why:
                yield from _labelled(INDENT, one_line(pull.why), room)
        elif environment.health:
            why = no_longer_healthy(one_line(environment.message))
            yield from _labelled(f"{environment.name}: ", why, room)
        elif environment.message and environment.state not in ("Verified", "NotTargeted"):
            yield from _labelled(f"{environment.name}: ", one_line(environment.message), room)
        for gate in gates:
            yield from _gate(gate, now, room)


def _gate(gate: GateLine, now: datetime, room: int) -> Iterator[str]:
    yield f"{INDENT}gate {gate.name} [{gate.scope}]  {state_text(gate.answer)}"
    lines = [one_line(gate.detail)]
    if gate.message:
        lines.append(f"“{one_line(gate.message)}”")
    if gate.answer == "FAIL" and gate.opens_at is not None:
        lines.append(f"opens in ~{span(gate.opens_at - now)} (at {gate.opens_at:%Y-%m-%d %H:%M:%S} UTC)")
    elif gate.answer == "FAIL":
        lines.append(f"time alone does not open it: {gate.owner} can")
    for line in lines:
        yield from _labelled(INDENT * 2, line, room)


def _next(view: StatusView, room: int) -> Iterator[str]:
    """Yield the next commands, each on its own line so that it can be copied."""
    steps = next_steps(view)
    if steps or view.phase in UNDER_WAY:
        yield styled("NEXT", bold=True)
    if not steps and view.phase in UNDER_WAY:
        yield f"  nothing to do, it goes on by itself; to follow it: kardinal watch {view.pipeline}"
    for step in steps:
        yield f"  {step.command}"
        yield from _labelled(INDENT, f"to {step.purpose}", room)


def _labelled(label: str, text: str, room: int) -> Iterator[str]:
    """Yield a label with a text, whose further lines are indented to its first line."""
    first, *others = wrapped(text, max(room - text_width(label), 20))
    yield f"{label}{first}"
    yield from (" " * text_width(label) + line for line in others)
