"""`POST /api/v1/namespaces/NS/approvals/NAME`: a system outside answers whether it approves a Bundle.

The request is signed as the posts of Bundles are, by a token whose scope lists NAME, and always with a time. The name
of the Approval is a hash of the delivery, so the API server refuses a recorded request that is sent again for another
NAME; those of the last minutes are remembered besides, because their Approval may have been deleted. Of the answers of
one NAME the one signed last counts, and earlier ones are deleted.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus

from aiohttp import web

from kardinal.clock import Clock
from kardinal.kube import KubeError
from kardinal.objects.naming import NAME_LIMIT, long_hash
from kardinal.promotion.api import Approval, Bundle
from kardinal.promotion.api.approval import ApprovalSpec, ExternalAnswer
from kardinal.promotion.api.signature import SIGNATURE, TIMESTAMP
from kardinal.runtime.rate import RateLimit
from kardinal.runtime.routes import HttpRoute, RouteGroup
from kardinal_controller.approvals.creation import ApprovalCreator
from kardinal_controller.approvals.posts import APPROVALS_PER_MINUTE, check_expiry, created
from kardinal_controller.approvals.records import ApprovalRecords
from kardinal_controller.approvals.request import AnswerRequest, parse
from kardinal_controller.caches import Caches, pipeline_label
from kardinal_controller.http.authentication import Claim, PostAuthenticator, unauthorized
from kardinal_controller.http.bodies import Bodies
from kardinal_controller.http.body import is_namespace
from kardinal_controller.http.creation import AnsweredPosts
from kardinal_controller.http.credentials import Token
from kardinal_controller.http.problem import FieldError, ProblemError
from kardinal_controller.http.request_credentials import RequestCredentials

__all__ = ["ExternalAnswers"]

PATH = "/api/v1/namespaces/{namespace}/approvals/{name}"


@dataclass(frozen=True, slots=True)
class _Post:
    """A request with a valid token and signature whose scope lists the name."""

    claim: Claim
    token: Token
    name: str
    request: AnswerRequest

    @property
    def signed_at(self) -> int:
        stamp = self.claim.credentials.signed_at()
        assert stamp is not None  # noqa: S101 - unstamped requests are refused
        return stamp


class ExternalAnswers:
    """Create the Approvals that systems outside post."""

    def __init__(
        self,
        caches: Caches,
        authenticator: PostAuthenticator,
        records: ApprovalRecords,
        creator: ApprovalCreator,
        *,
        clock: Clock,
        bodies: Bodies,
    ) -> None:
        self._caches = caches
        self._authenticator = authenticator
        self._records = records
        self._creator = creator
        self._clock = clock
        self._bodies = bodies
        self._answered = AnsweredPosts(clock)
        self._rate = RateLimit(limit=APPROVALS_PER_MINUTE, window=60.0, clock=clock)

    def group(self) -> RouteGroup[_Post]:
        return RouteGroup((HttpRoute("POST", PATH, self._create),), self._authenticated)

    @asynccontextmanager
    async def _authenticated(self, http: web.Request) -> AsyncIterator[_Post]:
        """Check the token before the body is read, and the signature before it is decoded."""
        credentials = RequestCredentials.read(http.headers)
        if credentials is None or credentials.timestamp is None:
            raise unauthorized(
                f"send Authorization: Bearer <token>, {TIMESTAMP}: <seconds since 1970> "
                f"and {SIGNATURE}: sha256=<hex HMAC-SHA256>"
            )
        namespace = http.match_info["namespace"]
        name = http.match_info["name"]
        if not is_namespace(namespace) or not is_namespace(name):
            raise ProblemError(HTTPStatus.NOT_FOUND, "the path does not name a namespace and an approval")
        claim = await self._authenticator.claim(namespace, credentials, address=http.remote)
        if claim.token is None:
            raise self._authenticator.refuse(claim)
        async with self._bodies.body(http, owner=namespace) as body:
            token = self._authenticator.authenticate(claim, body.content)
            if not token.may_answer(name):
                raise ProblemError(
                    HTTPStatus.FORBIDDEN,
                    f"{token.title} may not answer {name}: list it under approvals of the token in tokens.yaml",
                )
            request = await body.work(parse, body.content, AnswerRequest)
        yield _Post(claim, token, name, request)

    async def _create(self, _: web.Request, post: _Post) -> web.Response:
        namespace = post.claim.namespace
        signature = post.claim.credentials.signature
        if (before := self._answered.name(namespace, signature)) is not None:
            return self._again(before, post)
        bundle = self._bundle(post)
        check_expiry(post.request.expires_at, self._clock)
        if wait := self._rate.admit(bundle.metadata.uid):
            raise ProblemError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"too many answers about Bundle {post.request.bundle}; try again in {wait} s",
                headers={"Retry-After": str(wait)},
            )
        spec = _spec(post, bundle)
        approval = await self._creator.create(_name(post), spec, bundle)
        if not _same(approval.spec, spec):
            raise _used_already()
        self._answered.add(namespace, signature, _remembered(approval.metadata.name, post), signed_at=post.signed_at)
        await self._delete_earlier(approval, bundle)
        return created(approval.metadata.name, namespace)

    def _again(self, before: str, post: _Post) -> web.Response:
        """Answer a delivery that has created an Approval before, also if that was deleted meanwhile."""
        name = before.partition(" ")[0]
        if _remembered(name, post) != before:
            raise _used_already()
        return created(name, post.claim.namespace)

    def _bundle(self, post: _Post) -> Bundle:
        namespace = post.claim.namespace
        request = post.request
        stored = self._caches.bundles.get(namespace, request.bundle)
        if stored is None:
            raise ProblemError(HTTPStatus.NOT_FOUND, f"there is no Bundle {request.bundle} in namespace {namespace}")
        pipeline = self._caches.pipeline(namespace, pipeline_label(stored))
        known = [each["name"] for each in pipeline["spec"].get("environments", ())] if pipeline else []
        if request.environment is not None and request.environment not in known:
            raise ProblemError(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                "the body is not a valid approval",
                [FieldError("environment", f"the Pipeline has no such environment; known: {', '.join(known)}")],
            )
        return Bundle.model_validate(stored)

    async def _delete_earlier(self, latest: Approval, bundle: Bundle) -> None:
        external = latest.spec.external
        for other in self._records.of_bundle(bundle):
            before = other.spec.external
            if (
                external is not None
                and before is not None
                and before.name == external.name
                and other.spec.environment == latest.spec.environment
                and before.signed_at < external.signed_at
            ):
                # What is left over does not count beside the later one.
                with suppress(KubeError):
                    await self._creator.delete(other)


def _spec(post: _Post, bundle: Bundle) -> ApprovalSpec:
    request = post.request
    return ApprovalSpec(
        bundle=request.bundle,
        uid=bundle.metadata.uid,
        environment=request.environment,
        external=ExternalAnswer(
            name=post.name, approved=request.approved, signed_at=datetime.fromtimestamp(post.signed_at, UTC)
        ),
        approver=post.token.title,
        reason=request.reason or None,
        expires_at=request.expires_at,
        via="controller",
    )


def _name(post: _Post) -> str:
    suffix = long_hash("\0".join(("answer", post.token.name, post.claim.credentials.identity)))
    return f"{post.request.bundle[: NAME_LIMIT - len(suffix) - 1].rstrip('-.')}-{suffix}"


def _remembered(name: str, post: _Post) -> str:
    return f"{name} {post.name}"


def _same(before: ApprovalSpec, wanted: ApprovalSpec) -> bool:
    """Return whether two deliveries say the same; a repeated one may be signed again, at another time."""
    if before.external is None or wanted.external is None:
        return False
    signed_at = before.external.signed_at
    return before == wanted.model_copy(update={"external": wanted.external.model_copy(update={"signed_at": signed_at})})


def _used_already() -> ProblemError:
    return ProblemError(
        HTTPStatus.CONFLICT,
        "this delivery has given another answer already: sign again, and use a new Idempotency-Key for a new answer",
    )
