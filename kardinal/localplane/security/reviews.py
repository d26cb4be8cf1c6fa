"""Questions about requests: who am I, whose token is this, may I.

They are answered and forgotten. Every identity of this server may do everything, and the answers say so.
"""

from __future__ import annotations

from kardinal.localplane.documents import JsonObject
from kardinal.localplane.kinds import Kind
from kardinal.localplane.security.identities import Tokens, User

__all__ = ["REVIEW_KINDS", "review"]


def _kind(group: str, kind: str) -> Kind:
    lower = kind.lower()
    return Kind(group, "v1", kind, f"{lower}s", lower, f"{kind}List", namespaced=False, stored=False)


REVIEW_KINDS = (
    _kind("authentication.k8s.io", "TokenReview"),
    _kind("authentication.k8s.io", "SelfSubjectReview"),
    _kind("authorization.k8s.io", "SubjectAccessReview"),
    _kind("authorization.k8s.io", "SelfSubjectAccessReview"),
    _kind("authorization.k8s.io", "SelfSubjectRulesReview"),
)


def review(kind: Kind, document: JsonObject, *, user: User, tokens: Tokens) -> JsonObject:
    """The document with its status."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {},
        "spec": document.get("spec") or {},
        "status": _status(kind, document, user=user, tokens=tokens),
    }


def _status(kind: Kind, document: JsonObject, *, user: User, tokens: Tokens) -> JsonObject:
    match kind.kind:
        case "TokenReview":
            token = (document.get("spec") or {}).get("token")
            found = tokens.authenticate(token) if isinstance(token, str) else None
            return {"authenticated": False} if found is None else {"authenticated": True, "user": _user_info(found)}
        case "SelfSubjectReview":
            return {"userInfo": _user_info(user)}
        case "SelfSubjectRulesReview":
            rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
            urls = {"verbs": ["*"], "nonResourceURLs": ["*"]}
            return {"resourceRules": [rule], "nonResourceRules": [urls], "incomplete": False}
    return {"allowed": True, "reason": "the local plane lets every identity do everything"}


def _user_info(user: User) -> JsonObject:
    return {"username": user.name, "groups": list(user.groups)}
