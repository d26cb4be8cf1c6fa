"""Report on a Pipeline which of its fields have no effect here.

The reason may be a flag of the controller, a missing Secret, for example that of `git.webhookSecretRef`, or other
fields of the Pipeline.

A Pipeline that is always invalid is refused by the condition `Ready`. The condition `Ignored` is for the other cases:
the Pipeline promotes, but a field has no effect. It is present while that is true. Secrets are neither listed nor
watched: the Secret of a webhook is read when the Pipeline changes or the controller starts, and again while it is
unusable.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from kardinal.clock import Clock
from kardinal.kube import Client, Forbidden, NotFound
from kardinal.objects import SECRET, Key
from kardinal.objects.conditions import MESSAGE_LIMIT
from kardinal.objects.text import cut
from kardinal.promotion.api import Pipeline, set_condition
from kardinal.promotion.kinds import PIPELINE
from kardinal.promotion.translation.validation import ignored_fields
from kardinal.runtime import Backoff, EventRecorder, Informer, KeyMemory, Result, Source, StatusWriter, Watch
from kardinal.runtime.predicates import generation_changed
from kardinal_controller.webhook_secrets import KEY, webhook_secret

__all__ = ["IGNORED", "IgnoredReconciler"]

IGNORED = "Ignored"
"""The condition of a Pipeline with a field that has no effect."""

RETRY = Backoff(base=5.0, cap=300.0, jitter=0.2)
"""The wait before an unusable Secret of a webhook is read again."""

_Problem = tuple[str, str]
"""A reason such as `WebhookSecretNotFound`, and a message with the path of the field and the remedy."""


class IgnoredReconciler:
    """Write the condition Ignored.

    `registries`: the operator allows some registries. `webhooks`: the providers that send deliveries.
    """

    def __init__(
        self,
        pipelines: Informer,
        *,
        secrets: Client,
        registries: bool,
        webhooks: frozenset[str],
        status: StatusWriter,
        recorder: EventRecorder,
        clock: Clock,
    ) -> None:
        self._pipelines = pipelines
        self._secrets = secrets
        self._registries = registries
        self._webhooks = webhooks
        self._status = status
        self._recorder = recorder
        self._clock = clock
        self.memory = KeyMemory(pipelines)
        self._failures: dict[Key, int] = self.memory.map()

    def sources(self) -> Sequence[Source]:
        return [Watch(self._pipelines, when=generation_changed)]

    async def reconcile(self, key: Key) -> Result:
        current = self._pipelines.get(*key)
        if current is None or "deletionTimestamp" in current["metadata"]:
            return Result()
        pipeline = Pipeline.model_validate(current)
        webhook = await self._webhook(pipeline)
        fields = [("NoPullRequests", f"{field}: {message}") for field, message in ignored_fields(pipeline)]
        problems = [*fields, *self._pull_secret(pipeline), *webhook]
        message = cut("; ".join(text for _, text in problems), MESSAGE_LIMIT)
        before = pipeline.status.condition(IGNORED)
        conditions = tuple(each for each in pipeline.status.conditions if each.type != IGNORED)
        if problems:
            conditions = set_condition(
                pipeline.status.conditions,
                IGNORED,
                "True",
                reason=problems[0][0],
                message=message,
                now=self._clock.now(),
                observed_generation=pipeline.metadata.generation or None,
            )
        status = pipeline.status.model_copy(update={"conditions": conditions})
        await self._status.write(PIPELINE, current, status.to_json(), shared=True)
        if problems and (before is None or before.message != message):
            self._recorder.event(current, type="Warning", reason=IGNORED, note=message)
        if not webhook:
            self._failures.pop(key, None)
            return Result()
        failures = self._failures[key] = self._failures.get(key, -1) + 1
        return Result(requeue_after=timedelta(seconds=RETRY.delay(failures)))

    def _pull_secret(self, pipeline: Pipeline) -> list[_Problem]:
        if pipeline.spec.pull_secret_ref is None or self._registries:
            return []
        return [
            (
                "RegistriesNotAsked",
                "spec.pullSecretRef: no registry is asked with it, since the controller runs without "
                "--allow-registries: ask its operator for the flag, or leave the field out",
            )
        ]

    async def _webhook(self, pipeline: Pipeline) -> list[_Problem]:
        git = pipeline.spec.git
        namespace = pipeline.metadata.namespace
        if git.webhook_secret_ref is None or git.provider not in self._webhooks:
            return []
        name = git.webhook_secret_ref.name
        subject = f"spec.git.webhookSecretRef: Secret {namespace}/{name}"
        try:
            _, problem = webhook_secret(await self._secrets.get(SECRET, name, namespace))
        except NotFound:
            remedy = f"create it with key {KEY}, or leave the field out"
            return [("WebhookSecretNotFound", f"{subject} does not exist, so deliveries are refused: {remedy}")]
        except Forbidden:
            remedy = f"apply deploy/secrets/namespace.yaml to the namespace, with {name} among the names of its Role"
            return [
                ("WebhookSecretUnreadable", f"{subject} may not be read, so deliveries are refused: {remedy}"),
            ]
        if not problem:
            return []
        return [("WebhookSecretUnusable", f"{subject} is not used, so deliveries are refused: {problem}")]
