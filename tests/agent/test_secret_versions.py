"""A changed Secret is told when it is read again, and only its version is remembered."""

from __future__ import annotations

from typing import Any

from kardinal.objects import Key
from kardinal_agent.secret_memory import SecretVersions


def version(text: str) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": text}, "data": {"token": "c2VjcmV0"}}


def test_a_change_is_told_once_and_a_first_reading_is_none() -> None:
    versions = SecretVersions()
    told = list[Key]()
    versions.subscribe(told.append)
    one = Key("team", "one")
    other = Key("team", "other")
    for key, text in ((one, "1"), (other, "1"), (one, "1"), (one, "2"), (one, "2"), (other, "1")):
        versions.note(key, version(text))
    assert told == [one]
    assert "c2VjcmV0" not in str(vars(versions))


def test_memory_is_bounded() -> None:
    versions = SecretVersions()
    told = list[Key]()
    versions.subscribe(told.append)
    for number in range(10_000):
        versions.note(Key("team", str(number)), version("1"))
    assert len(vars(versions)["_known"]) <= 4_096
    versions.note(Key("team", "0"), version("2"))
    assert told == []
