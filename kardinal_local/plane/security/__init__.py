"""Authentication, authorization and the credentials of the plane.

    authority, certificates, private                  TLS, and files of the owner alone
    identities, accounts, authentication, users       whose request it is
    impersonation                                     and as whom it acts
    attributes, rules, access, escalation             what may be done
    reviews, token_requests                           questions about all this, as Kubernetes asks them
    bootstrap                                         what every cluster starts with

Knows nothing of HTTP.
"""

from kardinal_local.plane.security.access import Access
from kardinal_local.plane.security.accounts import Accounts
from kardinal_local.plane.security.attributes import Attributes
from kardinal_local.plane.security.authentication import HEALTH_PATHS, Authentication
from kardinal_local.plane.security.authority import Authority
from kardinal_local.plane.security.bootstrap import bootstrap, first_objects
from kardinal_local.plane.security.escalation import refuse_escalation
from kardinal_local.plane.security.identities import IDENTITIES, Tokens, write_kubeconfig
from kardinal_local.plane.security.impersonation import impersonate
from kardinal_local.plane.security.private import private_directory
from kardinal_local.plane.security.reviews import REVIEW_KINDS, Reviews
from kardinal_local.plane.security.token_requests import TOKEN_REQUEST, TokenRequests
from kardinal_local.plane.security.users import ANONYMOUS, User

__all__ = [
    "ANONYMOUS",
    "HEALTH_PATHS",
    "IDENTITIES",
    "REVIEW_KINDS",
    "TOKEN_REQUEST",
    "Access",
    "Accounts",
    "Attributes",
    "Authentication",
    "Authority",
    "Reviews",
    "TokenRequests",
    "Tokens",
    "User",
    "bootstrap",
    "first_objects",
    "impersonate",
    "private_directory",
    "refuse_escalation",
    "write_kubeconfig",
]
