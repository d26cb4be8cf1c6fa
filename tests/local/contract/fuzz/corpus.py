"""Differences that were found once: the requests, and what the real server answered.

A file holds all that is needed to ask again without a real server: the definition, the requests and its answers.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import orjson

from tests.local.contract.fuzz.outcomes import Outcome
from tests.local.contract.fuzz.runner import Difference
from tests.local.contract.fuzz.steps import Sequence, Step

__all__ = ["DIRECTORY", "keep", "kept"]

DIRECTORY = Path(__file__).parent / "corpus"


def keep(difference: Difference, directory: Path = DIRECTORY) -> Path:
    """Write a difference down, with the answers of the right server."""
    played = difference.sequence
    steps = played.steps[: len(difference.right)]
    document = {
        "name": played.name,
        "collection": played.collection,
        "base": played.base,
        "definition": played.definition,
        "steps": [step.encoded() for step in steps],
        "answers": [outcome.encoded() for outcome in difference.right],
    }
    text = orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)
    last = steps[-1]
    verb = f"{last.verb}-{last.subresource}" if last.subresource else last.verb
    path = directory / f"{played.kind.lower()}-{verb}-{hashlib.sha256(text).hexdigest()[:8]}.json"
    directory.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)
    return path


def kept(path: Path) -> tuple[Sequence, list[Outcome]]:
    """A sequence and its right answers."""
    document = orjson.loads(path.read_bytes())
    played = Sequence(
        document["name"],
        document["collection"],
        document["base"],
        tuple(Step.decoded(step) for step in document["steps"]),
        document["definition"],
    )
    return played, [Outcome.decoded(answer) for answer in document["answers"]]
