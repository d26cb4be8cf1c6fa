"""One transfer by libgit2, in a process of its own: `python -m kardinal.git.worker FILE`.

The file holds the request, credentials included, and has no name that others could open. What happens is written to the
file of number 4, one JSON object a line; the last one is the result.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from kardinal.git.credentials import Credentials
from kardinal.git.errors import GitError, RefMoved
from kardinal.git.meaning import Expected
from kardinal.git.redirects import Redirected
from kardinal.git.transport import Transfer, prepare, transfer

__all__ = ["EVENTS", "main"]

EVENTS = 4
_INTERVAL = 0.5
"""Seconds between two reports of progress."""


def main() -> None:
    """Make the transfer and report how it went."""
    with open(sys.argv[1], "rb") as file:
        request = json.load(file)
    prepare()
    with os.fdopen(EVENTS, "w") as events:

        def report(**event: Any) -> None:
            print(json.dumps(event), file=events, flush=True)

        report(result=_result(request, report))


def _result(request: dict[str, Any], report: Any) -> dict[str, Any]:
    told = -_INTERVAL

    def progress(received: int) -> None:
        nonlocal told
        if time.monotonic() - told >= _INTERVAL:
            told = time.monotonic()
            report(received=received)

    credentials = Credentials(*request["credentials"]) if request["credentials"] else None
    pushing = Expected(*request["expected"]) if request["expected"] else None
    try:
        transfer(
            request["mirror"], request["new"], Transfer(request["url"], credentials, progress=progress, pushing=pushing)
        )
    except RefMoved as moved:
        return {"error": RefMoved.__name__, "lock": moved.lock, "said": moved.said}
    except Redirected as redirect:
        return {"error": Redirected.__name__, "location": redirect.location}
    except GitError as error:
        return {
            "error": type(error).__name__,
            "message": error.message,
            "remedy": error.remedy,
            "transient": error.transient,
        }
    return {}


if __name__ == "__main__":
    main()
