"""Answer requests to merge, evaluate and render: `python -I -m kardinal.catalog.worker --memory=BYTES --cpu=SECONDS`.

It is started behind its walls (`kardinal.processes.confined`), by `kardinal.catalog.engine`. Requests come from
standard input, answers go to standard output. It ends when standard input is closed, also in the middle of a template.
"""

from __future__ import annotations

import os
import queue
import resource
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from kardinal.catalog.errors import CatalogError
from kardinal.catalog.messages import encode, error_header, merged_of, parse
from kardinal.catalog.values import Merged, Node, RenderJob
from kardinal.catalog.worker import hierarchy, jsonnet, rendering
from kardinal.processes.workers import FRAME_HEADER

__all__ = ["main"]

_LARGEST_FILE = 64 << 20


class _Worker:
    """The state between requests: `inventory` is that of the instances that are rendered next."""

    def __init__(self) -> None:
        self._inventory: Mapping[str, Merged] = {}

    def answer(self, request: Mapping[str, Any]) -> bytes:
        """Return the answer to a request."""
        match request:
            case {"merge": nodes, "root": root, "tolerateMissing": tolerate, "walkFirst": walk_first}:
                merged = hierarchy.merge(
                    Path(root),
                    {name: _node(node) for name, node in nodes.items()},
                    tolerate_missing=tolerate,
                    walk_first=walk_first,
                )
                return encode({"nodes": {name: _merged(node) for name, node in merged.items()}})
            case {"origin": node, "root": root, "path": path}:
                return encode({"values": hierarchy.origin(Path(root), _node(node), path)})
            case {"evaluate": file, "root": root, "variables": variables}:
                return encode({"value": jsonnet.evaluate(Path(root), file, variables)})
            case {"inventory": nodes}:
                self._inventory = {name: merged_of(node) for name, node in nodes.items()}
                return encode({})
            case {"render": job, "root": root}:
                made = rendering.render_instance(Path(root), RenderJob(**job), self._inventory)
                listed = [[path, len(content)] for path, content in made.files.items()]
                header = {"files": listed, "notices": made.notices, "executable": sorted(made.executable)}
                return encode(header, b"".join(made.files.values()))
        raise ValueError("an unknown request")


def main() -> None:
    """Answer requests until standard input is closed."""
    options = dict(option.removeprefix("--").split("=") for option in sys.argv[1:])
    memory = int(options["memory"])
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LARGEST_FILE, _LARGEST_FILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    answers = os.fdopen(os.dup(1), "wb")
    # A library that prints does not answer.
    os.dup2(2, 1)
    threading.Thread(target=_read_requests, args=(sys.stdin.buffer, requests), daemon=True).start()
    worker = _Worker()
    while True:
        request = requests.get()
        _allow_cpu(int(options["cpu"]))
        answer = _answered(worker, request)
        answers.write(len(answer).to_bytes(FRAME_HEADER))
        answers.write(answer)
        answers.flush()


def _answered(worker: _Worker, request: bytes) -> bytes:
    try:
        header, _ = parse(request)
        return worker.answer(header)
    except CatalogError as error:
        return encode(error_header(error))
    except RecursionError:
        return encode(error_header(CatalogError("limit", "values are nested too deep")))
    except MemoryError:
        # The process that asked takes this for the limit, and starts another one.
        os._exit(137)
    except Exception as error:
        failed = CatalogError("render", f"the worker failed: {type(error).__name__}: {error}")
        return encode(error_header(failed))


def _read_requests(stdin: BinaryIO, requests: queue.SimpleQueue[bytes]) -> None:
    while len(header := stdin.read(FRAME_HEADER)) == FRAME_HEADER:
        requests.put(stdin.read(int.from_bytes(header)))
    os._exit(0)


def _allow_cpu(seconds: int) -> None:
    """Let this process use so many seconds of CPU from now on."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + seconds, hard))


def _node(value: Mapping[str, Any]) -> Node:
    return Node(tuple(value["classes"]), value["parameters"])


def _merged(node: Merged) -> dict[str, Any]:
    return {"applications": node.applications, "classes": node.classes, "parameters": node.parameters}


if __name__ == "__main__":
    main()
