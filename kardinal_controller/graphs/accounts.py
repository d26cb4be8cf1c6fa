"""The ServiceAccounts with whose rights Graphs read and write objects that are not the engine's own.

A Graph names an account of its own namespace in `spec.serviceAccountName`. The account counts only if a Role of that
namespace lets the controller impersonate it: the right to write Graphs is no right to every account of the namespace.

    kubectl create role kardinal-graphs -n team --verb=impersonate --resource=serviceaccounts --resource-name=deployer

Writes are made as the account, so the API server decides about each. Reads come from caches that the controller fills
with its own rights, so the API server is asked whether the account may read the object. An answer is used for a
minute, for the account that it is about and no other.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from kardinal.clock import Clock
from kardinal.graph.walk_types import Unobserved
from kardinal.kube import Client
from kardinal.objects import SERVICE_ACCOUNT, JsonObject, ResourceType
from kardinal.runtime.recent_answers import RecentAnswers
from kardinal.runtime.scrapes import ACCESS_REVIEW

__all__ = ["ANSWER_SECONDS", "Account", "AccountRights", "Permits", "account_of"]

ANSWER_SECONDS = 60.0
"""The age in seconds up to which an answer is used."""
ANSWERS = 32_768
"""The most answers in the cache."""

_SELF_ACCESS_REVIEW = ResourceType(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class Account(NamedTuple):
    """A ServiceAccount."""

    namespace: str
    name: str

    @property
    def user(self) -> str:
        """The name of its user, such as `system:serviceaccount:team:deployer`."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    @property
    def groups(self) -> list[str]:
        return ["system:serviceaccounts", f"system:serviceaccounts:{self.namespace}", "system:authenticated"]


class _Right(NamedTuple):
    """A verb on the objects of a kind: of all namespaces, of one, or on one object."""

    verb: str
    resource: ResourceType
    namespace: str = ""
    name: str = ""

    def attributes(self) -> JsonObject:
        named = {"namespace": self.namespace, "name": self.name}
        return {
            "verb": self.verb,
            "group": self.resource.group,
            "version": self.resource.version,
            "resource": self.resource.plural,
            **{field: value for field, value in named.items() if value},
        }

    def __str__(self) -> str:
        plural = f"{self.resource.plural}.{self.resource.group}".removesuffix(".")
        place = f"in namespace {self.namespace}" if self.namespace else "in all namespaces"
        return f"{self.verb} {plural} {place if self.resource.namespaced else 'of the cluster'}"


_Question = tuple[Account, _Right | None]
"""Whether an account has a right, or may be impersonated."""


def account_of(graph: JsonObject) -> Account | None:
    """Return the account that a Graph names; None if it names none."""
    name = (graph.get("spec") or {}).get("serviceAccountName")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return None
    return Account(graph["metadata"]["namespace"], name)


class AccountRights:
    """The answers of the API server about accounts."""

    def __init__(self, client: Client, *, clock: Clock) -> None:
        self._client = client
        self._answers = RecentAnswers[bool](clock=clock, most=ANSWERS)

    async def start(self) -> None:
        """Nothing has to be started."""

    async def stop(self) -> None:
        await self._answers.stop()

    async def lends(self, account: Account) -> bool:
        """Return whether the controller may impersonate an account."""
        attributes = {
            "verb": "impersonate",
            "group": "",
            "resource": "serviceaccounts",
            "namespace": account.namespace,
            "name": account.name,
        }
        ask = partial(self._ask, _SELF_ACCESS_REVIEW, {"resourceAttributes": attributes})
        return await self._answers.get((account, None), ask, max_age=ANSWER_SECONDS)

    async def may_act_as(self, account: Account, other: Account) -> bool:
        """Return whether an account may impersonate another one."""
        return await self.allows(account, _Right("impersonate", SERVICE_ACCOUNT, other.namespace, other.name))

    async def may_watch(self, resource: ResourceType) -> bool:
        """Return whether the controller may list and watch the objects of a kind in all namespaces."""
        for verb in ("list", "watch"):
            right = _Right(verb, resource)
            ask = partial(self._ask, _SELF_ACCESS_REVIEW, {"resourceAttributes": right.attributes()})
            if not await self._answers.get((None, right), ask, max_age=ANSWER_SECONDS):
                return False
        return True

    async def allows(self, account: Account, right: _Right) -> bool:
        """Return whether an account has a right."""
        spec = {"user": account.user, "groups": account.groups, "resourceAttributes": right.attributes()}
        ask = partial(self._ask, ACCESS_REVIEW, spec)
        return await self._answers.get((account, right), ask, max_age=ANSWER_SECONDS)

    async def may(self, account: Account, verb: str, resource: ResourceType, name: str) -> bool:
        """Return whether an account has a verb on one object of its namespace."""
        right = _Right(verb, resource, account.namespace)
        return await self.allows(account, right) or await self.allows(account, right._replace(name=name))

    async def _ask(self, resource: ResourceType, spec: JsonObject) -> bool:
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {}, "spec": spec}
        answer = await self._client.create(resource, body)
        return (answer.get("status") or {}).get("allowed") is True


@dataclass(slots=True)
class Permits:
    """The rights of the account of one Graph, for one reconcile.

    A walk cannot wait for an answer. So a question without an answer is noted, and its node is Pending; `look_up` asks
    the API server, and the Graph is walked again. An answer stands for the whole reconcile.
    """

    rights: AccountRights
    account: Account | None
    _answers: dict[_Question, bool] = field(default_factory=dict)
    _questions: dict[_Question, None] = field(default_factory=dict)

    def require(self, verb: str, resource: ResourceType, namespace: str, name: str = "") -> None:
        """Raise Unobserved unless the account may do this; `namespace` is empty for all namespaces."""
        account = self.require_account(resource)
        right = _Right(verb, resource, namespace, name)
        # A right on all objects is asked for once, however many of them a Graph has.
        allowed = self._answer(account, right._replace(name="")) or (bool(name) and self._answer(account, right))
        if not allowed:
            message = f"ServiceAccount {account.name} may not {right}: give it that right"
            raise Unobserved("Error", "AccessDenied", message)

    def require_account(self, resource: ResourceType) -> Account:
        """Return the account; raises Unobserved unless there is one that the controller may impersonate."""
        if self.account is None:
            message = (
                f"a {resource.kind} is read and written with the rights of a ServiceAccount: "
                "name one of this namespace in spec.serviceAccountName"
            )
            raise Unobserved("Error", "AccountMissing", message)
        if not self._answer(self.account, None):
            message = (
                f"the controller may not act as ServiceAccount {self.account.name}: give it the verb impersonate on "
                "serviceaccounts of that name by a Role in this namespace"
            )
            raise Unobserved("Error", "AccountNotLent", message)
        return self.account

    async def lent(self) -> bool:
        """Return whether the Graph names an account that the controller may impersonate."""
        if self.account is None:
            return False
        question = self.account, None
        if question not in self._answers:
            self._answers[question] = await self._ask(question)
        return self._answers[question]

    async def look_up(self) -> bool:
        """Ask what was noted; return whether there was anything."""
        questions = list(self._questions)
        self._questions.clear()
        answers = await asyncio.gather(*map(self._ask, questions))
        self._answers.update(zip(questions, answers, strict=True))
        return bool(questions)

    def _answer(self, account: Account, right: _Right | None) -> bool:
        answer = self._answers.get((account, right))
        if answer is None:
            self._questions[account, right] = None
            raise Unobserved("Pending", "Reading", "waits for the API server to say what the account may read")
        return answer

    async def _ask(self, question: _Question) -> bool:
        account, right = question
        return await (self.rights.lends(account) if right is None else self.rights.allows(account, right))
