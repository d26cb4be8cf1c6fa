"""Functions that encode and decode: base64 of bytes, and JSON.

`json.unmarshal` decodes text of the data, so its price counts every character as a value before it is decoded.
"""

from __future__ import annotations

import base64
import binascii

import orjson

from kardinal.cel.budget import Budget
from kardinal.cel.errors import Fault
from kardinal.cel.overloads import Function
from kardinal.cel.values import OMIT, to_json

__all__ = ["ENCODING_FUNCTIONS"]


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise Fault("conversion", "base64.decode() needs text in base64") from None


def _marshal(value: object) -> str:
    # The price has paid for every value.
    plain = to_json(value, Budget())
    if plain is OMIT:
        raise Fault("conversion", "json.marshal() of an optional that has none")
    try:
        return orjson.dumps(plain, option=orjson.OPT_SORT_KEYS).decode()
    except orjson.JSONEncodeError:
        raise Fault("limit", "json.marshal() of a value that is nested too deeply") from None


def _unmarshal(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise Fault("conversion", "json.unmarshal() needs JSON text") from None


ENCODING_FUNCTIONS: dict[str, Function] = {
    "base64.encode": Function({(bytes,): _encoded}),
    "base64.decode": Function({(str,): _decoded}),
    "json.marshal": Function(generic={1: _marshal}),
    "json.unmarshal": Function({(str,): _unmarshal}),
}
