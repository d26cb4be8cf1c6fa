"""One life of a Pipeline with a reviewed environment.

A review that ends in a refusal, and another attempt; a failure of health that is rolled back; a person's promotion and
rollback; a newer Bundle, and the deletion of one whose proposal is open.

The test is everything but the programs: CI, the reviewers, the cluster and the people with kubectl. It goes on as soon
as the API server says that a program has come to the point, however often it died on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kardinal.api import BUNDLE, PIPELINE, POLICY_GATE, PROMOTION_STEP
from kardinal.api.names import hold_name, rollback_name, step_name
from kardinal.git import Repositories
from kardinal.kube import Client, PatchType
from kardinal.objects import DEPLOYMENT, GRAPH, JsonObject
from kardinal.policy.holds import hold_gate
from kardinal.runtime import Clock
from kardinal.scm import PullRequests, local_pull_requests
from kardinal.translation.rollback import new_rollback, past_of
from tests.resilience.lives.observed import Observed
from tests.support.names import PROD, TEAM
from tests.support.objects import bundle, environment, pipeline
from tests.support.repository import IMAGE, GitRepository

__all__ = ["Life", "Outcome", "undisturbed"]


@dataclass(frozen=True)
class Outcome:
    """Everything that a life has come to, with the names of its Bundles as the life calls them.

    `commits`: Bundle and attempt, oldest first. `pulls`: attempt and state of each pull request, by number. `phases`:
    each Bundle that is left. `tag`: the version in the environment. `left`: branches, holds and finalizers.
    """

    commits: tuple[str, ...]
    pulls: tuple[str, ...]
    phases: dict[str, str]
    tag: str
    left: tuple[str, ...]


def undisturbed(seed: int) -> Outcome:
    """Return what a life comes to in which no program dies."""
    back = BACK[seed % 2]
    return Outcome(
        commits=("one-2", "two", back),
        pulls=("one closed", "one-2 merged", "two merged", f"{back} merged", "three closed", "four closed"),
        phases={"one": "Verified", "two": "Failed", back: "Verified", "three": "Superseded"},
        tag="1.0.1",
        left=(),
    )


BACK = ("rollback-of-two", "back")
"""The rollback of a life: by itself, or by hand after another attempt that has failed, too."""


class Life:
    """The life of one Pipeline, beside others on its plane."""

    def __init__(
        self,
        seed: int,
        repository: GitRepository,
        *,
        client: Client,
        observed: Observed,
        repositories: Repositories,
        clock: Clock,
    ) -> None:
        self.seed = seed
        self._pipeline = f"life-{seed}"
        self._repository = repository
        self._client = client
        self._observed = observed
        self._reviewer: PullRequests = local_pull_requests(repositories.open(repository.url), clock=clock)

    async def live(self) -> Outcome:
        """Live, and return what it came to once nothing is left to do."""
        by_itself = BACK[self.seed % 2] == "rollback-of-two"
        health = {"failureGrace": "1s", "resource": {"name": self._pipeline, "namespace": TEAM}}
        on_failure = "rollback" if by_itself else "none"
        prod = environment(PROD, approval="pr-review", onHealthFailure=on_failure, health=health)
        await self._client.create(PIPELINE, pipeline(self._repository, name=self._pipeline, environments=[prod]))
        await self._verified_at_the_second_attempt()
        await self._create("two", "1.0.2")
        await self._merge("two")
        await self._deploy("two", "1.0.2", healthy=False)
        await (self._rolled_back_by_itself() if by_itself else self._rolled_back_by_hand())
        await self._deleted_with_an_open_proposal()
        await self._until(lambda: not self._left(), f"{self._pipeline} to leave nothing")
        return await self._outcome()

    async def _verified_at_the_second_attempt(self) -> None:
        await self._create("one", "1.0.1")
        await self._reviewer.close(await self._proposed("one"), by="bob", comment="not yet")
        await self._phase("one", "Failed")
        await self._ask("one", "retry")
        await self._merge("one", attempt=2)
        await self._deploy("one", "1.0.1", attempt=2)
        await self._phase("one", "Verified")

    async def _rolled_back_by_itself(self) -> None:
        found = await self._phase("two", "Failed")
        rollback = rollback_name(self._name("two"), PROD, found["metadata"]["uid"]).removeprefix(self._name(""))
        await self._merge(rollback)
        await self._deploy(rollback, "1.0.1")
        await self._phase(rollback, "Verified")

    async def _rolled_back_by_hand(self) -> None:
        """Do what `kardinal retry`, `kardinal rollback` and `kardinal resume` do."""
        await self._phase("two", "Failed")
        await self._ask("two", "retry")
        await self._reached("two", "Failed", attempt=2)
        await self._observed.until(lambda: self._entry("two", attempt=2), "the failure to be told")
        bundles = list(self._bundles())
        past, name = past_of(bundles, PROD), self._name("back")
        assert past.runs is not None, bundles
        assert past.previous is not None, bundles
        hold = hold_gate(self._pipeline, PROD, namespace=TEAM, bundle=name, message="rolled back")
        await self._client.create(POLICY_GATE, hold)
        new = new_rollback(past.previous.bundle, of=past.runs, pipeline=self._pipeline, environment=PROD, source="cli")
        await self._client.create(BUNDLE, new.manifest(name))
        await self._merge("back")
        await self._deploy("back", "1.0.1")
        await self._phase("back", "Verified")
        await self._client.delete(POLICY_GATE, hold_name(self._pipeline, PROD), TEAM)

    async def _deleted_with_an_open_proposal(self) -> None:
        await self._create("three", "1.0.3")
        await self._proposed("three")
        await self._create("four", "1.0.4")
        await self._proposed("four")
        await self._phase("three", "Superseded")
        await self._client.delete(BUNDLE, self._name("four"), TEAM)
        await self._until(lambda: self._observed.get(PROMOTION_STEP, self._step("four")) is None, "the step to go")
        await self._until(lambda: self._observed.get(GRAPH, self._name("four")) is None, "the Graph to go")

    async def _create(self, name: str, tag: str) -> None:
        await self._client.create(BUNDLE, bundle(self._name(name), pipeline=self._pipeline, tag=tag))

    async def _ask(self, name: str, action: str) -> None:
        """Ask for another attempt, as `kardinal retry` and `kardinal promote` do."""
        request = {"id": f"{name}-{action}", "action": action, "environment": PROD}
        body = {"spec": {"intent": {"requests": [request]}}}
        await self._client.patch(BUNDLE, self._name(name), TEAM, body, kind=PatchType.MERGE)

    async def _proposed(self, name: str, attempt: int | None = None) -> int:
        """Return the number of the pull request of an attempt, once it waits for a reviewer."""
        status = await self._reached(name, "WaitingForMerge", attempt, lambda found: "pullRequest" in found)
        number: int = status["pullRequest"]["number"]
        return number

    async def _merge(self, name: str, attempt: int | None = None) -> None:
        await self._reviewer.merge(await self._proposed(name, attempt), by="alice")

    async def _deploy(self, name: str, tag: str, *, attempt: int | None = None, healthy: bool = True) -> None:
        """Roll a version out once it has landed, as far as it comes up."""
        await self._reached(name, "HealthChecking", attempt)
        labels = {"app": self._pipeline}
        template = {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "app", "image": f"{IMAGE}:{tag}"}]},
        }
        workload = {
            "apiVersion": DEPLOYMENT.api_version,
            "kind": DEPLOYMENT.kind,
            "metadata": {"name": self._pipeline, "namespace": TEAM},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
        }
        stored = await self._client.apply(DEPLOYMENT, workload, field_manager="test", force=True)
        status = {"status": {**_rolled_out(healthy), "observedGeneration": stored["metadata"]["generation"]}}
        await self._client.patch(DEPLOYMENT, self._pipeline, TEAM, status, kind=PatchType.MERGE, subresource="status")
        await self._reached(name, "Verified" if healthy else "Failed", attempt)

    async def _reached(
        self,
        name: str,
        state: str,
        attempt: int | None = None,
        accepts: Callable[[JsonObject], bool] = lambda _: True,
    ) -> JsonObject:
        """Return the status of a step in a state."""

        def look() -> JsonObject | None:
            status: JsonObject = (self._observed.get(PROMOTION_STEP, self._step(name)) or {}).get("status") or {}
            here = status.get("state") == state and status.get("attempt") == attempt
            return status if here and accepts(status) else None

        return await self._observed.until(look, f"{self._step(name)}, attempt {attempt or 1}, to be {state}")

    async def _phase(self, name: str, phase: str) -> JsonObject:
        def look() -> JsonObject | None:
            found = self._observed.get(BUNDLE, self._name(name))
            return found if found is not None and (found.get("status") or {}).get("phase") == phase else None

        return await self._observed.until(look, f"{self._name(name)} to be {phase}")

    def _entry(self, name: str, *, attempt: int) -> JsonObject | None:
        """Return the entry of an attempt that has failed."""
        entries = ((self._observed.get(BUNDLE, self._name(name)) or {}).get("status") or {}).get("environments") or {}
        found: JsonObject = entries.get(PROD) or {}
        return found if (found.get("state"), found.get("attempt")) == ("Failed", attempt) else None

    async def _until(self, holds: Callable[[], bool], what: str) -> None:
        await self._observed.until(lambda: True if holds() else None, what)

    async def _outcome(self) -> Outcome:
        bundles = list(self._bundles())
        called = {each["metadata"]["name"]: self._called(each["metadata"]["name"]) for each in bundles}
        commits = [commit.trailers for commit in reversed(self._repository.promotions(PROD))]
        pulls = await self._reviewer.list()
        overlay = self._repository.read(f"environments/{PROD}/kustomization.yaml")
        return Outcome(
            commits=tuple(
                self._called(each["Kardinal-Bundle"]) + _suffix(each.get("Kardinal-Attempt")) for each in commits
            ),
            pulls=tuple(f"{self._of_branch(each.head)} {each.state}" for each in pulls),
            phases={called[each["metadata"]["name"]]: each["status"]["phase"] for each in bundles},
            tag=overlay.partition('newTag: "')[2].partition('"')[0],
            left=tuple(self._left()),
        )

    def _left(self) -> list[str]:
        """Return what should not be there when a life is over."""
        steps = [each for each in self._observed.all(PROMOTION_STEP) if each["spec"]["pipeline"] == self._pipeline]
        return [
            *(f"finalizer of {each['metadata']['name']}" for each in steps if each["metadata"].get("finalizers")),
            *(f"branch {each}" for each in self._repository.branches() if each != "main"),
        ]

    def _bundles(self) -> list[JsonObject]:
        prefix = self._name("")
        return [each for each in self._observed.all(BUNDLE) if each["metadata"]["name"].startswith(prefix)]

    def _called(self, name: str) -> str:
        """Return the name of a Bundle without what makes it unique."""
        found = self._observed.get(BUNDLE, self._name("two"))
        if found is not None and name == rollback_name(self._name("two"), PROD, found["metadata"]["uid"]):
            return "rollback-of-two"
        return name.removeprefix(self._name(""))

    def _of_branch(self, branch: str) -> str:
        bundle_, _, attempt = branch.rpartition("/")
        name = bundle_.rpartition("/")[2]
        return self._called(name) + attempt.removeprefix(PROD)

    def _name(self, name: str) -> str:
        return f"{self._pipeline}-{name}"

    def _step(self, name: str) -> str:
        return step_name(self._name(name), PROD)


def _suffix(attempt: str | None) -> str:
    return f"-{attempt}" if attempt else ""


def _rolled_out(healthy: bool) -> JsonObject:
    """Return the status of a Deployment that is rolled out, or has given up."""
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    if healthy:
        conditions = [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}]
        return {**dict.fromkeys(counts, 1), "unavailableReplicas": None, "conditions": conditions}
    conditions = [
        {"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable"},
        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"},
    ]
    return {
        "replicas": 1,
        "updatedReplicas": 1,
        "readyReplicas": None,
        "availableReplicas": None,
        "unavailableReplicas": 1,
        "conditions": conditions,
    }
