"""Policy gates: which apply, what their expressions read, and how they are answered. Pure.

template_warnings             what of a template has no effect
needs                         which expressions are never true without an attribute
matching                      which templates apply to a Pipeline and an environment
binding                       the facts of an environment, and the globs that select them
coverage                      which gates hold what Pipelines write to
attributes, context, soak     what an expression may read, and its values for one Bundle
comparisons, evaluate         the answer and its reason
transition                    when time alone changes the answer
changes                       the answer about changes that no Bundle brings
freshness, decision           what to write into a gate's status, and when to evaluate again
"""

from kardinal.policy.binding import Binding, Place, place_of, places_of
from kardinal.policy.changes import ChangeAnswer, ChangeQuestions, binding_gates
from kardinal.policy.context import Context
from kardinal.policy.decision import Decision, decide
from kardinal.policy.evaluate import Answer, evaluate, fault
from kardinal.policy.matching import GateTemplate, collect
from kardinal.policy.soak import HealthyTime, Soak, healthy_time, upstream_soak
from kardinal.policy.transition import next_transition

__all__ = [
    "Answer",
    "Binding",
    "ChangeAnswer",
    "ChangeQuestions",
    "Context",
    "Decision",
    "GateTemplate",
    "HealthyTime",
    "Place",
    "Soak",
    "binding_gates",
    "collect",
    "decide",
    "evaluate",
    "fault",
    "healthy_time",
    "next_transition",
    "place_of",
    "places_of",
    "upstream_soak",
]
