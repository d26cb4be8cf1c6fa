"""Programs that stand for a worker of which templates have taken hold."""

from __future__ import annotations

import textwrap

__all__ = ["hostile_worker"]

_PRELUDE = """
import json, os, sys

def request():
    message = sys.stdin.buffer.read(int.from_bytes(sys.stdin.buffer.read(8), "big"))
    return json.loads(message[8 : 8 + int.from_bytes(message[:8], "big")])

def raw_answer(message):
    sys.stdout.buffer.write(len(message).to_bytes(8, "big") + message)
    sys.stdout.buffer.flush()

def answer(header, content=b""):
    encoded = json.dumps(header).encode()
    raw_answer(len(encoded).to_bytes(8, "big") + encoded + content)

def tried(function):
    try:
        return repr(function())
    except Exception as error:
        return type(error).__name__
"""


def hostile_worker(program: str) -> tuple[str, ...]:
    """Return the arguments of Python for a worker that runs `program`.

    It has `request()`, `answer(header, content)`, `raw_answer(message)`, and `tried(function)`, which returns the name
    of the error or the value as text.
    """
    return ("-c", _PRELUDE + textwrap.dedent(program))
