"""Who may talk to the plane.

authority     TLS
identities    users, tokens, kubeconfigs
reviews       questions about both, as Kubernetes asks them
private       files of the owner alone
"""

from kardinal.localplane.security.authority import Authority
from kardinal.localplane.security.identities import IDENTITIES, Tokens, User, write_kubeconfig
from kardinal.localplane.security.private import private_directory
from kardinal.localplane.security.reviews import REVIEW_KINDS, review

__all__ = [
    "IDENTITIES",
    "REVIEW_KINDS",
    "Authority",
    "Tokens",
    "User",
    "private_directory",
    "review",
    "write_kubeconfig",
]
