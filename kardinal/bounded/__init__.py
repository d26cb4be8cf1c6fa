"""Readers of bytes that others have written: hosts, registries, endpoints, contributors to a repository.

declaration   a row of the table in docs/security.md: the bytes that a reader takes, and its bounds
limits        the bounds of a JSON document
documents     JSON that is decoded after its size, nesting and number of values were counted in its bytes
loader        YAML values, for documents whose size and nesting were checked before
connections   connections to servers of others that are closed when the server floods them with answers
nesting       JSON without the parts that are nested too deep to be decoded
holding       the memory for such documents that a namespace, and the whole program, may hold at once

A reader asks for no compression, so that the bytes that are counted are the bytes that were sent.
"""

from kardinal.bounded.declaration import ForeignBytes, mebibytes
from kardinal.bounded.documents import NotJson, OverLimit, decode, decode_held, measure
from kardinal.bounded.holding import Held, Holding, NoRoom
from kardinal.bounded.limits import JsonLimits

__all__ = [
    "ForeignBytes",
    "Held",
    "Holding",
    "JsonLimits",
    "NoRoom",
    "NotJson",
    "OverLimit",
    "decode",
    "decode_held",
    "measure",
    "mebibytes",
]
