"""Remove the parts of a JSON document that are nested too deep for a decoder.

An API server accepts 10,000 levels where a schema is open, such as in the `config` of a step, and orjson decodes 1,024.
Otherwise a user who may write one object could make the list of all objects unreadable.
"""

from __future__ import annotations

import re

__all__ = ["shallow"]

_TOKENS = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)
_OPENING = b"[{"
_CLOSING = b"]}"


def shallow(content: bytes, most: int) -> bytes:
    """Return a document with null instead of each list and object beyond `most` levels.

    `[[1], 2]` with one level becomes `[null, 2]`. Invalid JSON stays invalid.
    """
    pieces = list[bytes]()
    depth = 0
    begin = 0
    for token in _TOKENS.finditer(content):
        first = token[0][:1]
        if first in _OPENING:
            depth += 1
            if depth == most + 1:
                pieces.append(content[begin : token.start()])
        elif first in _CLOSING:
            if depth == most + 1:
                pieces.append(b"null")
                begin = token.end()
            depth -= 1
    if depth <= most:
        pieces.append(content[begin:])
    return b"".join(pieces)
