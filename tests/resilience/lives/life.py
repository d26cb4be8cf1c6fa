"""One life of a Pipeline, in a namespace of its own.

A review that ends in a refusal, and another attempt; a failure of health that is rolled back by itself, or by a person
after another attempt; a newer Bundle that is deleted, in the middle of a push or with an open proposal.

The test is everything but the programs: CI, the reviewers, the cluster and the people with kubectl. It goes on as soon
as the API server says that a program has come to the point, however often it died on the way.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from kardinal.kube import Client, PatchType
from kardinal.objects import GRAPH, NAMESPACE, JsonObject
from kardinal.promotion.api.names import ANNOTATION_WOKEN, hold_name, rollback_name, step_name
from kardinal.promotion.kinds import BUNDLE, PIPELINE, POLICY_GATE, PROMOTION_STEP
from kardinal.promotion.policy.hold_gate import hold_gate
from kardinal.promotion.translation.rollback import new_rollback, past_of
from tests.resilience.lives.hosts import Place
from tests.resilience.lives.observed import Observed
from tests.resilience.lives.outcome import outcome_of
from tests.resilience.lives.plan import BY_ITSELF, FOUR_OF, TAGS, Outcome, Plan
from tests.resilience.lives.workloads import roll_out
from tests.support.names import DEV, PROD
from tests.support.objects import bundle, environment, namespace, pipeline
from tests.support.repository import APPLICATION, IMAGE

__all__ = ["Life"]

_PATIENCE = {"timeout": "12h", "failureGrace": "1s"}
"""Hours on a clock that runs fast are minutes of a machine that may be busy."""


class Life:
    """The life of one Pipeline, beside others on its plane."""

    def __init__(self, plan: Plan, name: str, place: Place, *, client: Client, observed: Observed) -> None:
        self.plan = plan
        self._namespace = name
        self._place = place
        self._client = client
        self._observed = observed

    async def live(self) -> Outcome:
        """Live, and return what it came to once nothing is left to do."""
        await self._client.create(NAMESPACE, namespace(self._namespace))
        await self._place.prepare(self._client, self._namespace)
        await self._client.create(PIPELINE, self._pipeline())
        await self._verified_at_the_second_attempt()
        await self._failed_and_rolled_back()
        await self._overtaken_by_one_that_is_deleted()
        return await outcome_of(self.plan, self._place, self._observed)

    def _pipeline(self) -> JsonObject:
        made = pipeline("", environments=[self._environment(name) for name in self.plan.environments])
        made["metadata"]["namespace"] = self._namespace
        made["spec"]["git"] = self._place.git
        return made

    def _environment(self, name: str) -> JsonObject:
        flow = {DEV: {}, PROD: {"approval": "pr-review"}}.get(name, {"pr": True})
        on_failure = "rollback" if self.plan.by_itself and name == self.plan.fails_in else "none"
        health = {**_PATIENCE, "resource": {"name": name, "namespace": self._namespace}}
        return environment(name, onHealthFailure=on_failure, health=health, **flow)

    async def _verified_at_the_second_attempt(self) -> None:
        await self._create("one")
        await self._promoted("one", self.plan.first)
        await self._place.close(await self._proposed("one"))
        await self._told("one")
        await self._phase("one", "Failed")
        await self._retry("one", PROD)
        await self._merge("one", attempt=2)
        await self._deploy("one", PROD, attempt=2)
        await self._phase("one", "Verified")

    async def _failed_and_rolled_back(self) -> None:
        where = self.plan.fails_in
        await self._create("two")
        await self._promoted("two", self.plan.until_failure[:-1])
        await self._merged("two", where)
        await self._deploy("two", where, healthy=False)
        await self._phase("two", "Failed")
        if self.plan.by_itself:
            await self._merged(BY_ITSELF, where)
        else:
            await self._fails_again(where)
            await self._rolled_back_by_hand(where)
        await self._deploy(self.plan.back, where, runs="one")
        await self._phase(self.plan.back, "Verified")
        if not self.plan.by_itself:
            await self._client.delete(POLICY_GATE, hold_name(APPLICATION, where), self._namespace)

    async def _fails_again(self, where: str) -> None:
        await self._retry("two", where)
        await self._reached("two", where, "Failed", attempt=2)
        await self._observed.until(lambda: self._failed_entry("two", where, attempt=2), "the failure to be told")

    async def _rolled_back_by_hand(self, where: str) -> None:
        """Do what `kardinal rollback` does."""
        past = past_of(self._observed.all(BUNDLE), where)
        assert past.runs is not None, where
        assert past.previous is not None, where
        hold = hold_gate(APPLICATION, where, namespace=self._namespace, bundle="back", message="rolled back")
        await self._client.create(POLICY_GATE, hold)
        new = new_rollback(past.previous.bundle, of=past.runs, pipeline=APPLICATION, environment=where, source="cli")
        await self._client.create(BUNDLE, new.manifest("back"))
        await self._merged("back", where)

    async def _overtaken_by_one_that_is_deleted(self) -> None:
        await self._create("three")
        await self._promoted("three", self.plan.first)
        await self._proposed("three")
        await self._create("four")
        if self.plan.takes_over:
            await self._promoted("four", self.plan.first)
            await self._proposed("four")
            await self._phase("three", "Superseded")
        await self._reached("four", FOUR_OF[self.plan.deleted_at], self.plan.deleted_at, or_later=True)
        await self._client.delete(BUNDLE, "four", self._namespace)
        await self._until(lambda: self._observed.get(GRAPH, "four") is None, "the Graph to go")
        await self._until(lambda: not self._has_steps("four"), "its steps to go")
        if not self.plan.takes_over:
            await self._merge("three")
            await self._deploy("three", PROD)
            await self._phase("three", "Verified")

    def _has_steps(self, name: str) -> bool:
        return any(each["spec"]["bundleRef"] == name for each in self._observed.all(PROMOTION_STEP))

    async def _promoted(self, name: str, environments: tuple[str, ...]) -> None:
        """Deploy a Bundle in environments that no person has a part in."""
        for each in environments:
            await self._deploy(name, each)

    async def _merged(self, name: str, where: str) -> None:
        """Merge where a person does that."""
        if where == PROD:
            await self._merge(name)

    async def _create(self, name: str) -> None:
        await self._client.create(BUNDLE, bundle(name, tag=TAGS[name], namespace=self._namespace))

    async def _retry(self, name: str, where: str) -> None:
        """Ask for another attempt, as `kardinal retry` does."""
        request = {"id": f"{name}-retry", "action": "retry", "environment": where}
        body = {"spec": {"intent": {"requests": [request]}}}
        await self._client.patch(BUNDLE, name, self._namespace, body, kind=PatchType.MERGE)

    async def _proposed(self, name: str, attempt: int | None = None) -> int:
        """Return the number of the pull request of an attempt, once it waits for a reviewer."""
        status = await self._reached(name, PROD, "WaitingForMerge", attempt, lambda found: "pullRequest" in found)
        number: int = status["pullRequest"]["number"]
        return number

    async def _merge(self, name: str, attempt: int | None = None) -> None:
        await self._place.merge(await self._proposed(name, attempt))
        await self._told(name)

    async def _told(self, name: str) -> None:
        """Say what the webhook of a host says; without one the programs find it by looking."""
        if self._place.tells or not self.plan.told:
            return
        body = {"metadata": {"annotations": {ANNOTATION_WOKEN: uuid.uuid4().hex}}}
        await self._client.patch(PROMOTION_STEP, self._step(name, PROD), self._namespace, body, kind=PatchType.MERGE)

    async def _deploy(
        self, name: str, where: str, *, attempt: int | None = None, healthy: bool = True, runs: str = ""
    ) -> None:
        """Roll the version of a Bundle out once it has landed, as far as it comes up; `runs` names another Bundle."""
        await self._reached(name, where, "HealthChecking", attempt)
        image = f"{IMAGE}:{TAGS[runs or name]}"
        await roll_out(self._client, where, namespace=self._namespace, image=image, healthy=healthy)
        await self._reached(name, where, "Verified" if healthy else "Failed", attempt)

    async def _reached(
        self,
        name: str,
        where: str,
        state: str,
        attempt: int | None = None,
        accepts: Callable[[JsonObject], bool] = lambda _: True,
        *,
        or_later: bool = False,
    ) -> JsonObject:
        """Return the status of a step in a state; `or_later`: it may have been so and gone on."""
        states = _STATES[_STATES.index(state) :] if or_later else [state]

        def seen() -> JsonObject:
            status: JsonObject = (self._observed.get(PROMOTION_STEP, self._step(name, where)) or {}).get("status") or {}
            return status

        def look() -> JsonObject | None:
            status = seen()
            here = status.get("state") in states and status.get("attempt") == attempt
            return status if here and accepts(status) else None

        what = f"{self._namespace}/{name} in {where}, attempt {attempt or 1}, to be {state}"
        return await self._observed.until(
            look, what, show=lambda: (seen(), self._observed.get(BUNDLE, self._name(name)))
        )

    async def _phase(self, name: str, phase: str) -> JsonObject:
        def look() -> JsonObject | None:
            found = self._observed.get(BUNDLE, self._name(name))
            return found if found is not None and (found.get("status") or {}).get("phase") == phase else None

        return await self._observed.until(look, f"{self._namespace}/{name} to be {phase}")

    def _failed_entry(self, name: str, where: str, *, attempt: int) -> JsonObject | None:
        entries = ((self._observed.get(BUNDLE, name) or {}).get("status") or {}).get("environments") or {}
        found: JsonObject = entries.get(where) or {}
        return found if (found.get("state"), found.get("attempt")) == ("Failed", attempt) else None

    async def _until(self, holds: Callable[[], bool], what: str) -> None:
        await self._observed.until(lambda: True if holds() else None, f"{self._namespace}: {what}")

    def _name(self, name: str) -> str:
        """Return the name of a Bundle."""
        found = self._observed.get(BUNDLE, "two") if name == BY_ITSELF else None
        return rollback_name("two", self.plan.fails_in, found["metadata"]["uid"]) if found is not None else name

    def _step(self, name: str, where: str) -> str:
        return step_name(self._name(name), where)


_STATES = ["Pending", "Promoting", "WaitingForMerge", "HealthChecking", "Verified"]
"""The states of a step, in their order."""
