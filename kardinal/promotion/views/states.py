"""The states of Bundles, PromotionSteps, gates and of environments without a PromotionStep, explained for people.

Each state has a sentence about its meaning and the command to type next. All views use these texts: `kardinal status`
prints the commands, and `docs/states.md` is generated from the table. The commands have the placeholders PIPELINE,
BUNDLE, ENVIRONMENT and NUMBER, which `command_of` replaces, and REPOSITORY:TAG, which the reader replaces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from kardinal.promotion.api.names import WAITING_FOR_GRAPH

if TYPE_CHECKING:
    from kardinal.promotion.api import Bundle

__all__ = [
    "AVAILABLE",
    "STATES",
    "SUPERSEDED",
    "UNDER_WAY",
    "UNHEALTHY",
    "WITHOUT_STEP",
    "Answer",
    "State",
    "command_of",
    "no_longer_healthy",
    "phase_of",
    "title_of",
]

AVAILABLE = "Available"
"""The phase that is shown for a Bundle without `status.phase`."""

UNDER_WAY = (AVAILABLE, WAITING_FOR_GRAPH, "Promoting")
"""The shown phases of a Bundle that has not ended."""

SUPERSEDED = "Superseded"
"""The state that is shown for a promotion that was given up for a newer Bundle; its PromotionStep is Failed."""

WITHOUT_STEP = ("Skipped", "NotTargeted", "NotReached", "Waiting", "Blocked")
"""The states of an environment for which the Bundle has no PromotionStep."""

UNHEALTHY = ("Degraded", "CannotBeSeen")
"""The values of the health of an environment that was Verified and is no longer healthy."""

Answer = Literal["PASS", "FAIL", "PENDING"]
"""The answer of a gate before an environment."""

_CREATE = "kardinal create bundle PIPELINE --image REPOSITORY:TAG"
_WATCH = "kardinal watch PIPELINE"
_EXPLAIN = "kardinal explain PIPELINE --env ENVIRONMENT"


@dataclass(frozen=True, slots=True)
class State:
    """One state of one kind, for example `("Gate", "PASS")`; an empty command means that there is nothing to do."""

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
    State(
        "Bundle",
        WAITING_FOR_GRAPH,
        "A person writes its Graph, which is not there yet or was refused. The condition Ready says which, and why.",
        "kardinal init --mode graph --from PIPELINE --bundle BUNDLE",
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
    State("Environment", "Skipped", "The Bundle leaves it out: a gate permitted it, or its condition `when` is false."),
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
    """Return the command to type next, with its placeholders replaced; empty if there is none.

    `values` are the replacements by the placeholder in lower case: `command_of("Bundle", "Promoting", pipeline="shop")`
    returns `kardinal watch shop`.
    """
    found = STATES.get((kind, state))
    command = found.command if found is not None else ""
    for name, value in values.items():
        command = command.replace(name.upper(), value)
    return command


def title_of(state: str) -> str:
    """Return a state as separate words in capitals: `NotTargeted` → `NOT TARGETED`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", state).upper()


def phase_of(bundle: Bundle) -> str:
    """Return the phase that is shown for a Bundle: that of its status, `WaitingForGraph`, or else `Available`."""
    return WAITING_FOR_GRAPH if bundle.status.waits_for_graph else bundle.status.phase or AVAILABLE


def no_longer_healthy(message: str) -> str:
    """Return the sentence about a Verified environment that is no longer healthy; `message` is the reason."""
    return f"Verified, and no longer healthy: {message}"
