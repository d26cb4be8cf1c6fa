"""Policy gates: which gates apply, which values their expressions read, and how they answer. Pure.

template_warnings             the parts of a gate template that have no effect
needs                         expressions that cannot be true without an attribute
matching                      the gate templates that apply to a Pipeline and an environment
binding                       the facts of an environment, and the globs in `spec.match` that select them
coverage                      the gates that hold each path that Pipelines write to
attributes, context, soak,
inputs, calendar              the attributes that an expression may read, and their values for one Bundle
comparisons, evaluate         the answer and its reason
transition                    the moment at which time alone changes the answer
changes                       the answer about a change without a Bundle, such as a person's pull request
freshness, decision           the status of a gate, and when to evaluate it again
attestation                   the proof of which webhook token a Bundle was posted with
holds                         the gate that protects an environment after a rollback
"""

from kardinal.promotion.policy.binding import Binding, Place, place_of, places_of
from kardinal.promotion.policy.changes import ChangeAnswer, ChangeQuestions, binding_gates
from kardinal.promotion.policy.context import GateContext
from kardinal.promotion.policy.decision import GateDecision, decide
from kardinal.promotion.policy.evaluate import Answer, evaluate, fault
from kardinal.promotion.policy.matching import GateTemplate, collect
from kardinal.promotion.policy.soak import HealthyTime, Soak, healthy_time, upstream_soak
from kardinal.promotion.policy.transition import next_transition

__all__ = [
    "Answer",
    "Binding",
    "ChangeAnswer",
    "ChangeQuestions",
    "GateContext",
    "GateDecision",
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
