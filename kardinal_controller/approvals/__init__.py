"""Approvals: which ones count, and the HTTP requests that create them.

records     the Approvals of a cluster, and which of them count at a gate
admission   whether the admission policy of the cluster refuses forged ones, tried at the start and every hour
events      Events about a Bundle: approved, not approved, revoked
creation    create an Approval and sign it
posts       `POST /api/v1/approvals`: a person approves, with a bearer token of the API server
external    `POST /api/v1/namespaces/NS/approvals/NAME`: a system outside answers, with a token of the webhook
"""

from kardinal_controller.approvals.admission import AdmissionProof
from kardinal_controller.approvals.creation import ApprovalCreator
from kardinal_controller.approvals.events import ApprovalEvents
from kardinal_controller.approvals.external import ExternalAnswers
from kardinal_controller.approvals.posts import ApprovalPosts
from kardinal_controller.approvals.records import ApprovalRecords

__all__ = [
    "AdmissionProof",
    "ApprovalCreator",
    "ApprovalEvents",
    "ApprovalPosts",
    "ApprovalRecords",
    "ExternalAnswers",
]
