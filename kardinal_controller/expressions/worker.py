"""The process that parses expressions for a control plane, on its standard streams.

A request is a pickled list of texts. The answer is a list of pickles, one for each text: its syntax, or the position
and message of its error. Each message is preceded by its length. The process ends when its input ends, so it never
outlives the program that started it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import struct
import sys
from typing import IO, Final

from kardinal import cel

__all__ = ["HEADER", "main"]

HEADER: Final = struct.Struct(">I")
"""The length of a message in bytes, which precedes it."""

_ADDRESS_SPACE: Final = 1 << 30
_POLITENESS: Final = 10


def main() -> None:
    """Answer requests until the input ends."""
    os.nice(_POLITENESS)
    with contextlib.suppress(ValueError, OSError):  # macOS has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    requests = sys.stdin.buffer
    answers = sys.stdout.buffer
    while request := _read(requests):
        sources: list[str] = pickle.loads(request)  # noqa: S301 - from the program that started this process
        answer = pickle.dumps([pickle.dumps(_parsed(source)) for source in sources])
        answers.write(HEADER.pack(len(answer)) + answer)
        answers.flush()


def _read(stream: IO[bytes]) -> bytes:
    header = stream.read(HEADER.size)
    return stream.read(*HEADER.unpack(header)) if len(header) == HEADER.size else b""


def _parsed(source: str) -> cel.Node | tuple[int, str]:
    try:
        return cel.lower(source)
    except cel.CompileError as error:
        return error.position, error.message


if __name__ == "__main__":
    main()
