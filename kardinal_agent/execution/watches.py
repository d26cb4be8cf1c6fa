"""The memory of promotions between runs: subscriptions to their repositories, refused credentials, written progress.

All are caches. A process that starts looks at every waiting promotion once and subscribes again.
"""

from __future__ import annotations

from datetime import timedelta

from kardinal.git import Subscription
from kardinal.objects import Key
from kardinal.runtime import Channel, Clock
from kardinal_agent.secret_versions import SecretVersions
from kardinal_agent.steps import Subscribe

__all__ = ["MergeWatches", "ProgressWrites", "RefusedCredentials"]


class MergeWatches:
    """Watch the repositories in which merges are waited for; a notification says only that another look is worth it."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._subscriptions: dict[Key, Subscription] = {}

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
    """Run the promotions whose credential was refused as soon as anything has read its Secret anew.

    Agents may not watch Secrets: a change is found by the next promotion, poll or look at a Pipeline that reads one.
    """

    def __init__(self, versions: SecretVersions, channel: Channel) -> None:
        self._channel = channel
        self._waiting: dict[Key, set[Key]] = {}
        self._mended: set[Key] = set()
        versions.subscribe(self._changed)

    def wait(self, key: Key, secret: Key) -> None:
        """Ask for a run of `key` at the next change of `secret`."""
        self._waiting.setdefault(secret, set()).add(key)

    def take(self, key: Key) -> bool:
        """Return whether the Secret that `key` waits for has changed since it was asked last."""
        mended = key in self._mended
        self._mended.discard(key)
        return mended

    def forget(self, key: Key) -> None:
        """Drop what is known of `key`."""
        self._mended.discard(key)
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
    is sent to every watcher. A message that is urgent, such as `a person must sync it`, is not kept back after one that
    was not. What is no longer urgent is, so that a tool that goes to and fro has no write of its own for each time.
    """

    def __init__(self, interval: timedelta, *, clock: Clock) -> None:
        self._interval = interval.total_seconds()
        self._clock = clock
        self._written: dict[Key, float] = {}
        self._urgent: set[Key] = set()

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

    def forget(self, key: Key) -> None:
        """Drop what is known of `key`."""
        self._written.pop(key, None)
        self._urgent.discard(key)
