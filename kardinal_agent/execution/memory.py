"""The memory of promotions between runs: subscriptions to their repositories, refused credentials, written progress.

All are caches: a process that starts runs every waiting promotion once, and subscribes again.
"""

from __future__ import annotations

from datetime import timedelta

from kardinal.clock import Clock
from kardinal.git import BranchSubscription
from kardinal.objects import Key
from kardinal.runtime import Channel, Informer, KeyMemory
from kardinal_agent.secret_memory import SecretVersions
from kardinal_agent.steps import Subscribe

__all__ = ["MergeWatches", "ProgressWrites", "RefusedCredentials", "StepMemory"]


class StepMemory:
    """Everything that an agent remembers of its PromotionSteps, in the parts in which it is dropped."""

    def __init__(self, steps: Informer) -> None:
        self.whole = KeyMemory(steps)
        self.attempt = self.whole.part()
        """The memory of an attempt that is under way, such as the subscription while a merge is waited for."""
        self.proof = self.whole.part()
        """The memory of an environment that is looked at, such as the open watches."""


class MergeWatches:
    """Watch the repositories of promotions that wait for a merge; a notification only causes another run."""

    def __init__(self, channel: Channel, memory: KeyMemory) -> None:
        self._channel = channel
        self._subscriptions: dict[Key, BranchSubscription] = {}
        memory.on_drop(self.release)

    def watch(self, key: Key, subscribe: Subscribe) -> None:
        """Ask for a run of `key` at every notification from now on; subscribes once."""
        if key not in self._subscriptions:
            self._subscriptions[key] = subscribe(lambda: self._channel.push(key))

    def release(self, key: Key) -> None:
        """End the subscription of `key`, if there is one."""
        subscription = self._subscriptions.pop(key, None)
        if subscription is not None:
            subscription.close()

    def close(self) -> None:
        """End all subscriptions."""
        for key in list(self._subscriptions):
            self.release(key)


class RefusedCredentials:
    """Run the promotions whose credential was refused when their Secret is read in another version.

    Agents may not watch Secrets: a change is found by the next promotion, poll or look at a Pipeline that reads one.
    """

    def __init__(self, versions: SecretVersions, channel: Channel, memory: KeyMemory) -> None:
        self._channel = channel
        self._waiting: dict[Key, set[Key]] = {}
        self._mended = memory.set()
        memory.on_drop(self._stop_waiting)
        versions.subscribe(self._changed)

    def wait(self, key: Key, secret: Key) -> None:
        """Ask for a run of `key` at the next change of `secret`."""
        self._waiting.setdefault(secret, set()).add(key)

    def take(self, key: Key) -> bool:
        """Return whether the Secret that `key` waits for has changed since it was asked last."""
        mended = key in self._mended
        self._mended.discard(key)
        return mended

    def _stop_waiting(self, key: Key) -> None:
        for secret in [secret for secret, keys in self._waiting.items() if key in keys]:
            self._waiting[secret].discard(key)
            if not self._waiting[secret]:
                del self._waiting[secret]

    def _changed(self, secret: Key) -> None:
        for key in self._waiting.pop(secret, ()):
            self._mended.add(key)
            self._channel.push(key)


class ProgressWrites:
    """Limit how often a status is written that differs in its message alone.

    A rollout changes its Deployment many times a second; a person reads its progress every few seconds, and every write
    is sent to every watcher. An urgent message, such as `a person must sync it`, is written at once after one that was
    not urgent. The message after an urgent one waits, so that a tool that alternates does not cause a write each time.
    """

    def __init__(self, interval: timedelta, *, clock: Clock, memory: KeyMemory) -> None:
        self._interval = interval.total_seconds()
        self._clock = clock
        self._written: dict[Key, float] = memory.map()
        self._urgent = memory.set()

    def delay(self, key: Key, *, urgent: bool = False) -> timedelta:
        """Return how long the next such write of `key` must wait; zero when it may happen now."""
        if urgent and key not in self._urgent:
            return timedelta()
        left = self._written.get(key, -self._interval) + self._interval - self._clock.monotonic()
        return timedelta(seconds=max(left, 0.0))

    def note(self, key: Key, *, urgent: bool = False) -> None:
        """Remember that the message of `key` is written now."""
        self._written[key] = self._clock.monotonic()
        if urgent:
            self._urgent.add(key)
        else:
            self._urgent.discard(key)
