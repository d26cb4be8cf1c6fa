"""The tokens of a Secret, read from whatever its owner wrote."""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from kardinal_controller.http.credentials import WebhookCredentials, read_credentials
from tests.support.webhook import token_entry

NOW = datetime(2026, 3, 3, 10, 0, tzinfo=UTC)


def read(**data: str) -> WebhookCredentials:
    encoded = {name.replace("_", "."): base64.b64encode(text.encode()).decode() for name, text in data.items()}
    return read_credentials({"metadata": {"namespace": "team", "name": "kardinal-webhook"}, "data": encoded})


def entries(*items: dict[str, Any]) -> WebhookCredentials:
    return read(tokens_yaml=yaml.safe_dump(list(items)))


def test_a_secret_holds_one_token_for_everything_but_skips_and_any_number_with_a_scope() -> None:
    listed = token_entry("release", token="b", key="kb", pipelines=["shop-*"], types=["image"], maySkip=["qa-*"])
    found = read(token="a", hmacKey="ka", tokens_yaml=yaml.safe_dump([listed]))
    assert found.faults == ()
    old = found.holder(b"a", NOW)
    new = found.holder(b"b", NOW)
    assert old is not None
    assert (old.name, old.hmac_key, old.may_post_to("any"), old.skippable(("qa-1",))) == ("", b"ka", True, ())
    assert new is not None
    assert (new.may_post_to("shop-1"), new.may_post_to("other")) == (True, False)
    assert new.skippable(("qa-1", "prod", "qa-2")) == ("qa-1", "qa-2")
    assert new.types == ("image",)
    assert found.holder(b"c", NOW) is None
    assert found.holder(b"", NOW) is None


def test_a_token_ends_when_it_expires() -> None:
    found = entries(token_entry("short", token="a", key="k", expires="2026-03-03T11:00:00+01:00"))
    assert found.holder(b"a", NOW - timedelta(seconds=1)) is not None
    assert found.holder(b"a", NOW) is None


def test_a_hash_may_be_digits_alone_and_say_what_it_is_of() -> None:
    digits = "1" * 64
    text = (
        f"- name: digits\n  hash: {digits}\n  hmacKey: 0123\n- name: named\n  hash: sha256:{'A' * 64}\n  hmacKey: k\n"
    )
    found = read(tokens_yaml=text)
    assert found.faults == ()
    assert [token.digest.hex() for token in found.tokens] == [digits, "a" * 64]
    assert found.tokens[0].hmac_key == b"0123"


def test_one_half_of_a_pair_is_no_token() -> None:
    assert read(token="a").tokens == ()
    assert read(hmacKey="k").tokens == ()
    assert read_credentials({"metadata": {}, "data": {"token": "no base64!", "hmacKey": "aw=="}}).tokens == ()


GOOD = token_entry("good", token="good", key="k")
BOMB = "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b]\n"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("- [", "is not YAML; line"),
        ("tokens: []", "must be a list"),
        ("- 7", "tokens.yaml[0]"),
        (BOMB, "aliases are not read; line 2"),
        ("[" * 2000, "is nested too deeply"),
        ("x" * 70_000, "is larger than"),
        (yaml.safe_dump([dict(GOOD) for _ in range(65)]), "at most 64 tokens"),
        (yaml.safe_dump([GOOD, {**GOOD, "hash": "b" * 64}]), "the same name"),
        (yaml.safe_dump([GOOD, {**GOOD, "name": "other"}]), "the same hash"),
        (yaml.safe_dump([{**GOOD, "hash": "secret-in-the-clear"}]), "tokens.yaml[0].hash"),
        (yaml.safe_dump([{**GOOD, "expires": "soon"}]), "tokens.yaml[0].expires"),
        (yaml.safe_dump([{**GOOD, "types": ["chart"]}]), "tokens.yaml[0].types[0]"),
        (yaml.safe_dump([{**GOOD, "maySkip": "prod"}]), "tokens.yaml[0].maySkip"),
        (yaml.safe_dump([{**GOOD, "secret-in-the-clear": "x"}]), "unknown field; known: name, hash, hmacKey"),
        (yaml.safe_dump([{"name": "bare"}]), "tokens.yaml[0].hash"),
        ("\x00", "is not YAML"),
    ],
)
def test_a_file_with_a_fault_gives_no_token_and_says_where_without_its_values(text: str, fault: str) -> None:
    found = read(token="a", hmacKey="k", tokens_yaml=text)
    assert fault in "; ".join(found.faults)
    assert "secret-in-the-clear" not in "; ".join(found.faults)
    assert hashlib.sha256(b"good").hexdigest() not in "; ".join(found.faults)
    assert len(found.faults) <= 5
    assert [token.name for token in found.tokens] == [""], "the old pair goes on"


def test_a_token_shows_neither_its_hash_nor_its_key() -> None:
    [token] = entries(token_entry("shown", token="a", key="hmac-in-the-clear")).tokens
    assert "hmac-in-the-clear" not in repr(token)
    assert token.digest.hex() not in repr(token)
