"""Session cookies that are forged, cut, mixed or old say nothing."""

from __future__ import annotations

from datetime import timedelta
from http.cookies import SimpleCookie

import pytest
from aiohttp import web

from kardinal_controller.ui.access.cookies import PART, TOKEN_LIMIT, SessionCookies, TokenSession
from tests.support.clock import VirtualClock
from tests.support.secret_values import secret_value

KEY = b"k" * 32
TOKEN = secret_value("session")


def cookies(clock: VirtualClock, key: bytes = KEY) -> SessionCookies:
    return SessionCookies(key, path="/delivery", clock=clock)


def written(clock: VirtualClock, token: str = TOKEN, *, seconds: int = 60, key: bytes = KEY) -> dict[str, str]:
    """Return the cookies that a browser keeps of a new session."""
    answer = web.Response()
    session = TokenSession(token, int(clock.now().timestamp()) + seconds)
    cookies(clock, key).write(answer, session, secure=True)
    return {name: morsel.value for name, morsel in answer.cookies.items() if morsel.value}


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.mark.parametrize("length", [1, 2_000, TOKEN_LIMIT])
def test_a_session_is_read_by_another_replica(clock: VirtualClock, length: int) -> None:
    kept = written(clock, "t" * length)
    assert all(len(name) + len(value) < 4_096 - len("=; Path=/delivery") for name, value in kept.items())
    assert sum(len(f"{name}={value}; ") for name, value in kept.items()) < 7_500
    found = cookies(clock).read(kept)
    assert found is not None
    assert found.token == "t" * length


def test_a_session_is_not_in_the_repr_of_its_token(clock: VirtualClock) -> None:
    found = cookies(clock).read(written(clock))
    assert TOKEN not in repr(found)
    assert TOKEN not in "".join(written(clock).values())


def test_attributes_of_a_cookie_keep_it_from_scripts_and_from_other_sites(clock: VirtualClock) -> None:
    answer = web.Response()
    cookies(clock).write(answer, TokenSession(TOKEN, int(clock.now().timestamp()) + 60), secure=True)
    morsel = SimpleCookie(answer.cookies["kardinal-ui"].OutputString())["kardinal-ui"]
    assert morsel["httponly"]
    assert morsel["secure"]
    assert (morsel["samesite"], morsel["path"], morsel["max-age"]) == ("Strict", "/delivery", "60")


def test_a_session_ends_even_if_the_browser_keeps_its_cookie(clock: VirtualClock) -> None:
    kept = written(clock, seconds=60)
    late = VirtualClock(start=clock.now() + timedelta(seconds=60))
    assert cookies(late).read(kept) is None


def test_a_cookie_of_another_key_is_none(clock: VirtualClock) -> None:
    assert cookies(clock).read(written(clock, key=b"other" * 8)) is None


def test_every_changed_or_truncated_cookie_is_none(clock: VirtualClock) -> None:
    [value] = written(clock).values()
    for at in range(len(value)):
        changed = f"{value[:at]}{'A' if value[at] != 'A' else 'B'}{value[at + 1 :]}"
        read = cookies(clock).read({"kardinal-ui": changed})
        # The last character before the padding holds bits that base64 drops.
        assert read is None or at == len(value.rstrip("=")) - 1
        assert cookies(clock).read({"kardinal-ui": value[:at]}) is None


@pytest.mark.parametrize(
    "value", ["", ".", "1.", "0.abcd", "3.abcd", "-1.abcd", "1.!!!", "1.Ünbekannt", "1." + "A" * 9_000, "x" * 4_000]
)
def test_a_forged_cookie_is_none(clock: VirtualClock, value: str) -> None:
    assert cookies(clock).read({"kardinal-ui": value, "kardinal-ui-1": "AAAA"}) is None


def test_parts_of_two_sessions_are_none(clock: VirtualClock) -> None:
    one = written(clock, "a" * TOKEN_LIMIT)
    other = written(clock, "b" * TOKEN_LIMIT)
    assert cookies(clock).read(one | {"kardinal-ui-1": other["kardinal-ui-1"]}) is None
    assert cookies(clock).read({"kardinal-ui": one["kardinal-ui"]}) is None
    assert cookies(clock).read(one | {"kardinal-ui": "1." + one["kardinal-ui"][2 : 2 + PART]}) is None


def test_a_shorter_session_deletes_the_second_cookie_of_the_one_before(clock: VirtualClock) -> None:
    answer = web.Response()
    cookies(clock).write(answer, TokenSession("t", int(clock.now().timestamp()) + 60), secure=False)
    assert answer.cookies["kardinal-ui-1"]["max-age"] in (0, "0")
