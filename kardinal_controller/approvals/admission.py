"""Prove that the admission policy of the cluster refuses a forged Approval.

An Approval that a person creates is not signed. It may count only if a user cannot create one in the name of another,
which the policy in `deploy/admission/approvals.yaml` refuses. The controller tries that: it asks for the creation of an
Approval whose approver is another user, with `dryRun=All`, so that nothing is stored. The policy must refuse it in its
own words; any other error proves nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from kardinal.clock import Clock
from kardinal.kube import ApiError, Client, KubeError
from kardinal.objects import JsonObject
from kardinal.promotion.api.names import FIELD_MANAGER_CONTROLLER
from kardinal.promotion.kinds import APPROVAL
from kardinal.runtime.logging import get_logger

__all__ = ["FORGED_APPROVER", "REFUSED", "AdmissionProof"]

INTERVAL = 3600.0
"""The time in seconds between two tries."""
AGAIN = 60.0
"""The time in seconds before the next try after one that proved nothing."""
LONGEST = 2 * INTERVAL
"""The time in seconds for which a proof counts if no later try proves anything."""

POLICY = "kardinal-approvals"
REFUSED = "an Approval is created by its approver"
"""The answer of the policy: the message of its first validation."""
FORGED_APPROVER = "kardinal:another-user"

_log = get_logger(__name__)


class AdmissionProof:
    """A runnable of the manager. `namespace` is that of the controller, where it tries."""

    def __init__(self, client: Client, *, namespace: str, clock: Clock) -> None:
        self._client = client
        self._namespace = namespace
        self._clock = clock
        self._proven_at: float | None = None
        self._listeners: list[Callable[[], None]] = []
        self._told: bool | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def holds(self) -> bool:
        """Return whether the policy has refused a forgery at the last try that proved anything."""
        return self._proven_at is not None and self._clock.monotonic() < self._proven_at + LONGEST

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever `holds` has changed."""
        self._listeners.append(listener)

    async def start(self) -> None:
        pause = await self._try()
        self._task = asyncio.create_task(self._go_on(pause), name="proof of admission")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _go_on(self, pause: float) -> None:
        while True:
            await self._clock.sleep(pause)
            pause = await self._try()

    async def _try(self) -> float:
        """Try once, and return the time in seconds until the next try."""
        try:
            await self._client.create(
                APPROVAL, _forged(self._namespace), field_manager=FIELD_MANAGER_CONTROLLER, dry_run=True
            )
        except ApiError as error:
            if POLICY in error.message and REFUSED in error.message:
                self._proven_at = self._clock.monotonic()
                self._tell("Approvals that people create count: the admission policy refuses forged ones")
                return INTERVAL
            problem: KubeError = error
        except KubeError as error:
            problem = error
        else:
            self._proven_at = None
            self._tell("Approvals that people create do not count: a forged one is accepted; apply deploy/admission/")
            return INTERVAL
        self._tell("whether a forged Approval is refused could not be tried", error=str(problem))
        return AGAIN

    def _tell(self, message: str, **details: str) -> None:
        if details:
            _log.warning(message, **details)
        if self.holds == self._told:
            return
        self._told = self.holds
        if not details:
            (_log.info if self.holds else _log.error)(message)
        for listener in self._listeners:
            listener()


def _forged(namespace: str) -> JsonObject:
    return {
        "apiVersion": APPROVAL.api_version,
        "kind": APPROVAL.kind,
        "metadata": {"name": "kardinal-admission-probe", "namespace": namespace},
        "spec": {
            "bundle": "probe",
            "uid": "probe",
            "environment": "probe",
            "gate": f"{namespace}/probe",
            "approver": FORGED_APPROVER,
            "via": "admission",
        },
    }
