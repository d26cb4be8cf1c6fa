"""The value of a Secret is decoded, and no error repeats it."""

from __future__ import annotations

import base64
import traceback

import pytest

from kardinal.objects import JsonObject
from kardinal.objects.secrets import SecretValueError, secret_text, secret_value


def secret(**data: str | None) -> JsonObject:
    return {"metadata": {"namespace": "team", "name": "token"}, "data": data}


def encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()


def test_a_value_is_decoded_as_it_was_stored() -> None:
    assert secret_value(secret(key=encoded(b"\x00\xff \n")), "key") == b"\x00\xff \n"
    assert secret_text(secret(key=encoded("schlüssel\n".encode())), "key") == "schlüssel\n"


@pytest.mark.parametrize(
    "found", [secret(), secret(other="YQ=="), secret(key=""), secret(key=None), {"data": None}, {}]
)
def test_a_key_that_is_not_there_is_empty(found: JsonObject) -> None:
    assert secret_value(found, "key") == b""
    assert secret_text(found, "key") == ""


@pytest.mark.parametrize("value", ["hunter2!", "aHVudGVyMg", "hünter2="])
def test_a_value_that_is_not_base64_is_named_and_not_shown(value: str) -> None:
    with pytest.raises(SecretValueError) as refused:
        secret_value(secret(key=value), "key")
    assert str(refused.value) == "key key of Secret team/token is not base64"
    assert value not in "".join(traceback.format_exception(refused.value))


def test_a_value_that_is_not_text_is_named_and_not_shown() -> None:
    found = secret(key=encoded(b"hunter2\xff"))
    with pytest.raises(SecretValueError) as refused:
        secret_text(found, "key")
    assert str(refused.value) == "key key of Secret team/token is not text"
    assert "hunter2" not in "".join(traceback.format_exception(refused.value))


def test_a_secret_without_metadata_can_be_reported_too() -> None:
    with pytest.raises(SecretValueError, match="key key of Secret without a name is not base64"):
        secret_value({"data": {"key": "!"}}, "key")
