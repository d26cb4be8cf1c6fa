"""The requests of people, which commands and the web page make alike, with the rights of the person.

approvals   an approval at a gate
requester   the person, and the error of a request that is refused
intents     a promotion, another attempt
holds       a pause, its end, and the holds that rollbacks leave
rollbacks   a rollback
merges      the merge of a pull request of a local repository
"""

from kardinal.promotion.requests.approvals import (
    URL,
    GivenApproval,
    approve,
    find_approved_gate,
    local_url,
    may_approve,
)
from kardinal.promotion.requests.holds import end_hold, freeze, unfreeze
from kardinal.promotion.requests.intents import ask, find_promoted, pipeline_of, stored_bundle
from kardinal.promotion.requests.merges import open_pull_requests, refuse_merge
from kardinal.promotion.requests.requester import RequestDenied, Requester, Unanswered
from kardinal.promotion.requests.rollbacks import PlannedRollback, find_rollback, roll_back

__all__ = [
    "URL",
    "GivenApproval",
    "PlannedRollback",
    "RequestDenied",
    "Requester",
    "Unanswered",
    "approve",
    "ask",
    "end_hold",
    "find_approved_gate",
    "find_promoted",
    "find_rollback",
    "freeze",
    "local_url",
    "may_approve",
    "open_pull_requests",
    "pipeline_of",
    "refuse_merge",
    "roll_back",
    "stored_bundle",
    "unfreeze",
]
