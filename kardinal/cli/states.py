"""Every state that a Bundle, a PromotionStep, an environment without one and a gate can be in, for people.

The sentence says what the state means, the command what to type next. `kardinal status` prints the commands, and
`docs/states.md` is generated from this table. Placeholders are PIPELINE, BUNDLE, ENVIRONMENT, NUMBER and, in what the
reader has to choose, REPOSITORY:TAG.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["STATES", "State", "command_of"]

_CREATE = "kardinal create bundle PIPELINE --image REPOSITORY:TAG"
_WATCH = "kardinal watch PIPELINE"
_EXPLAIN = "kardinal explain PIPELINE --env ENVIRONMENT"


@dataclass(frozen=True, slots=True)
class State:
    """One state of one kind; without a command there is nothing to do."""

    kind: str
    name: str
    sentence: str
    command: str = ""


_ALL: Final = (
    State(
        "Bundle",
        "Available",
        "It has not started: its Pipeline is not there or cannot be used, or a newer Bundle is about to start. The "
        "condition Ready says which.",
        "kardinal status PIPELINE",
    ),
    State("Bundle", "Promoting", "It is on its way: an environment that it is meant for is not Verified yet.", _WATCH),
    State(
        "Bundle",
        "Verified",
        "Every environment that it is meant for runs it, by proof. With a target it can go further.",
        "kardinal promote PIPELINE --env ENVIRONMENT",
    ),
    State(
        "Bundle",
        "Failed",
        "An environment failed, or the Bundle cannot be promoted as it is written. The condition Ready says which.",
        "kardinal status PIPELINE --bundle BUNDLE",
    ),
    State(
        "Bundle",
        "Superseded",
        "A newer Bundle took its place before it had come everywhere. It has not failed: environments that it reached "
        "keep their evidence. It can be promoted again.",
        "kardinal promote PIPELINE --bundle BUNDLE",
    ),
    State(
        "Bundle",
        "SkipDenied",
        "It asks to leave an environment out, and no gate permits that. Create one without the skip, or with a token "
        "that may.",
        _CREATE,
    ),
    State("PromotionStep", "Pending", "It exists, and its agent has not begun: it is about to, or is held.", _WATCH),
    State("PromotionStep", "Promoting", "The manifests are edited, committed or pushed.", _WATCH),
    State(
        "PromotionStep",
        "WaitingForMerge",
        "Its pull request is open and waits for a review. With provider local it is merged by this command, elsewhere "
        "on the page of the host.",
        "kardinal pr merge NUMBER",
    ),
    State("PromotionStep", "HealthChecking", "The change has landed; the workload does not run it yet.", _WATCH),
    State("PromotionStep", "Verified", "The environment runs the promoted version, by proof."),
    State(
        "PromotionStep",
        "Failed",
        "It ended without proof. The message says why; what comes after it does not start. Mend the cause and try "
        "again, or create another Bundle.",
        "kardinal retry BUNDLE --env ENVIRONMENT",
    ),
    State(
        "Environment", "Waiting", "The Bundle comes here when what is before it is Verified and its gates open.", _WATCH
    ),
    State("Environment", "Blocked", "A gate is closed that time alone does not open.", _EXPLAIN),
    State("Environment", "Skipped", "The Bundle leaves it out, which a gate permitted."),
    State(
        "Environment",
        "Superseded",
        "Its step was given up for a newer Bundle before anything of it had landed. It has not failed.",
        "kardinal status PIPELINE",
    ),
    State(
        "Environment",
        "NotTargeted",
        "The Bundle does not go as far, or the environment is newer than its Graph.",
        "kardinal promote PIPELINE --env ENVIRONMENT",
    ),
    State(
        "Environment",
        "NotReached",
        "The Bundle ended, or an environment before this one failed.",
        "kardinal status PIPELINE",
    ),
    State(
        "Health",
        "Degraded",
        "What was Verified there is no longer healthy. What comes after it waits, and its soak starts anew when it is "
        "healthy again. Mend it, or bring another Bundle.",
        _EXPLAIN,
    ),
    State(
        "Health",
        "CannotBeSeen",
        "What was Verified there cannot be looked at. What comes after it waits, and the time does not count as soak.",
        _EXPLAIN,
    ),
    State("Gate", "PENDING", "It has not been evaluated: the environment before it is not Verified yet.", _WATCH),
    State("Gate", "PASS", "It lets the Bundle through."),
    State("Gate", "FAIL", "It holds the Bundle, with the values that it saw.", _EXPLAIN),
)

STATES: Final[Mapping[tuple[str, str], State]] = {(state.kind, state.name): state for state in _ALL}


def command_of(kind: str, state: str, **values: str) -> str:
    """Return what to type next; `values` are those of placeholders, by their names in lower case."""
    found = STATES.get((kind, state))
    command = found.command if found is not None else ""
    for name, value in values.items():
        command = command.replace(name.upper(), value)
    return command
