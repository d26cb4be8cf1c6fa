"""Answer reviews: of one's own identity, of a token, of one's own access and of that of others.

They are asked by creating an object that is answered and forgotten. Programs rely on the answers to authorise their own
callers, so that they come from where the server's own decisions come from.
"""

from __future__ import annotations

from kardinal_local.plane.apply import Writer, track_update
from kardinal_local.plane.builtin import BuiltinType
from kardinal_local.plane.clock import Clock
from kardinal_local.plane.documents import JsonObject, timestamp
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.kinds import Kind
from kardinal_local.plane.security.access import Access, Decision, told_together
from kardinal_local.plane.security.accounts import ISSUER, TokenRefused
from kardinal_local.plane.security.attributes import Attributes
from kardinal_local.plane.security.authentication import Authentication
from kardinal_local.plane.security.users import User
from kardinal_local.plane.statuses import bad_request, invalid

__all__ = ["REVIEW_KINDS", "Reviews"]

_AUTHENTICATION = "authentication.k8s.io"
_AUTHORIZATION = "authorization.k8s.io"


def _kind(group: str, kind: str, *, namespaced: bool = False) -> Kind:
    lower = kind.lower()
    return Kind(
        group,
        "v1",
        kind,
        f"{lower}s",
        lower,
        f"{kind}List",
        namespaced=namespaced,
        stored=False,
        typed=BuiltinType(group, "v1", kind),
    )


REVIEW_KINDS = (
    _kind(_AUTHENTICATION, "SelfSubjectReview"),
    _kind(_AUTHENTICATION, "TokenReview"),
    _kind(_AUTHORIZATION, "LocalSubjectAccessReview", namespaced=True),
    _kind(_AUTHORIZATION, "SelfSubjectAccessReview"),
    _kind(_AUTHORIZATION, "SelfSubjectRulesReview"),
    _kind(_AUTHORIZATION, "SubjectAccessReview"),
)

# The title of a refused review lacks its kind, on the real server too.
_NAMELESS = Kind(_AUTHORIZATION, "v1", "", "", "", "", stored=False)


class Reviews:
    """Answers them."""

    def __init__(self, access: Access, authentication: Authentication, *, clock: Clock) -> None:
        self._access = access
        self._authentication = authentication
        self._clock = clock

    def answer(self, kind: Kind, document: JsonObject, *, user: User, namespace: str, manager: str) -> JsonObject:
        """The review with its status."""
        spec: JsonObject = document.get("spec") or {}
        described: JsonObject = {"apiVersion": kind.api_version, "kind": kind.kind}
        match kind.kind:
            case "SelfSubjectReview":
                created = {"creationTimestamp": timestamp(self._clock.now())}
                return described | {"metadata": created, "status": {"userInfo": _user_info(user)}}
            case "SelfSubjectRulesReview":
                return described | {"metadata": {}, "spec": {}, "status": self._rules(spec, user=user)}
            case "TokenReview":
                status = self._token(spec)
            case "SelfSubjectAccessReview":
                _check(spec, self_review=True)
                status = self._access_of(user, spec)
            case _:
                _check(spec, namespace=namespace)
                status = self._access_of(_person(spec), spec)
        metadata = {"namespace": namespace} if namespace else {}
        review: JsonObject = described | {"metadata": metadata, "spec": spec}
        blank = {} if kind.typed is None else kind.typed.blank
        writer = Writer(manager, self._clock.now(), blank=blank)
        tracked = track_update(None, review, by=writer, schema=kind.schema)
        if tracked:
            review["metadata"]["managedFields"] = tracked
        return review | {"status": status}

    def _token(self, spec: JsonObject) -> JsonObject:
        token = spec.get("token")
        if not token or not isinstance(token, str):
            raise bad_request("token is required for TokenReview in authentication")
        try:
            found = self._authentication.of_token(token, audiences=spec.get("audiences") or (ISSUER,))
        except TokenRefused as refusal:
            return {"user": {}, "error": str(refusal)}
        return {"authenticated": True, "user": _user_info(found.user), "audiences": list(found.audiences)}

    def _access_of(self, user: User, spec: JsonObject) -> JsonObject:
        decision: Decision = self._access.decide(user, _asked(spec))
        return {"allowed": decision.allowed} | ({"reason": decision.reason} if decision.reason else {})

    def _rules(self, spec: JsonObject, *, user: User) -> JsonObject:
        namespace = spec.get("namespace")
        if not namespace:
            raise bad_request("no namespace on request")
        rules, problems = self._access.rules_for(user, namespace)
        status: JsonObject = {
            "resourceRules": [rule.to_json() for rule in rules if rule.resources],
            "nonResourceRules": [rule.to_json() for rule in rules if rule.urls],
            "incomplete": False,
        }
        return status | ({"evaluationError": told_together(problems)} if problems else {})


def _asked(spec: JsonObject) -> Attributes:
    if (path := spec.get("nonResourceAttributes")) is not None:
        return Attributes(path.get("verb", ""), path=path.get("path", ""))
    about = spec["resourceAttributes"]
    return Attributes(
        about.get("verb", ""),
        group=about.get("group", ""),
        resource=about.get("resource", ""),
        subresource=about.get("subresource", ""),
        namespace=about.get("namespace", ""),
        name=about.get("name", ""),
    )


def _person(spec: JsonObject) -> User:
    return User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""))


def _user_info(user: User) -> JsonObject:
    info: JsonObject = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        info["uid"] = user.uid
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra}
    return info


def _check(spec: JsonObject, *, self_review: bool = False, namespace: str = "") -> None:
    """422 for a question that makes no sense."""
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    causes = []
    if resource is not None and path is not None:
        causes.append(
            _wrong(
                "nonResourceAttributes", _printed(path), "cannot be specified in combination with resourceAttributes"
            )
        )
    if resource is None and path is None:
        explanation = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        causes.append(_wrong("resourceAttributes", "null", explanation))
    if not self_review and not spec.get("user") and not spec.get("groups"):
        causes.append(_wrong("user", '""', "at least one of user or group must be specified"))
    if namespace and resource is not None and resource.get("namespace", "") != namespace:
        shown = f'"{resource.get("namespace", "")}"'
        causes.append(_wrong("resourceAttributes.namespace", shown, "must match metadata.namespace"))
    if namespace and path is not None:
        causes.append(_wrong("nonResourceAttributes", _printed(path), "disallowed on this kind of request"))
    if causes:
        raise invalid(_NAMELESS, "", causes)


def _wrong(field: str, value: str, explanation: str) -> Cause:
    return Cause("FieldValueInvalid", f"spec.{field}", f"Invalid value: {value}: {explanation}")


def _printed(path: JsonObject) -> str:
    return f'{{"Path":"{path.get("path", "")}","Verb":"{path.get("verb", "")}"}}'
