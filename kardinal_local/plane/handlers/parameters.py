"""Parse the query parameters of a write: field manager, dry run, field validation, deletion options.

The real server reads them as one of its own objects (CreateOptions, PatchOptions, ...) and refuses what is wrong with
them as it would refuse an object, before it looks at the body.
"""

from __future__ import annotations

from kardinal_local.plane.errors import Cause
from kardinal_local.plane.objects import DeletionOptions, WriteOptions, dry_run_problems, parse_deletion_options
from kardinal_local.plane.statuses import invalid_options
from kardinal_local.plane.wire import Exchange, content_type, decode_options, manager_of

__all__ = ["deletion_options", "write_options"]

MANAGER_LENGTH = 128
_STRICTNESS = ("", "Ignore", "Strict", "Warn")
_ESCAPES = dict(zip("\a\b\f\n\r\t\v", (f"\\{letter}" for letter in "abfnrtv"), strict=True)) | {
    '"': '\\"',
    "\\": "\\\\",
}
_KINDS = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}


def write_options(exchange: Exchange, *, applied: bool) -> WriteOptions:
    """The options of a create, an update or a patch, of which an apply is one."""
    query = exchange.request.query
    manager, validation = query.get("fieldManager", ""), query.get("fieldValidation", "")
    causes = []
    if exchange.verb == "patch" and applied and not manager:
        causes.append(Cause("FieldValueRequired", "fieldManager", "Required value: is required for apply patch"))
    if exchange.verb == "patch" and not applied and "force" in query:
        forbidden = "Forbidden: may not be specified for non-apply patch"
        causes.append(Cause("FieldValueForbidden", "force", forbidden))
    causes += _manager_problems(manager)
    causes += dry_run_problems(query.getall("dryRun", []))
    if validation not in _STRICTNESS:
        allowed = ", ".join(f'"{one}"' for one in _STRICTNESS)
        problem = f'Unsupported value: "{validation}": supported values: {allowed}'
        causes.append(Cause("FieldValueNotSupported", "fieldValidation", problem))
    if causes:
        raise invalid_options(_KINDS[exchange.verb], causes)
    return WriteOptions(
        manager=manager_of(exchange),
        dry_run="dryRun" in query,
        validation=validation or "Warn",
    )


async def deletion_options(exchange: Exchange, body: bytes) -> DeletionOptions:
    """The options of a deletion, of one object or of many."""
    query = exchange.request.query
    document = await decode_options(body, content_type(exchange.request)) if body.strip() else {}
    return parse_deletion_options(document, {key: query.getall(key) for key in query})


def _manager_problems(manager: str) -> list[Cause]:
    causes = []
    if len(manager.encode()) > MANAGER_LENGTH:
        problem = f"Too long: may not be more than {MANAGER_LENGTH} bytes"
        causes.append(Cause("FieldValueTooLong", "fieldManager", problem))
    for position, character in enumerate(manager):
        if not character.isprintable():
            place = f"invalid character U+{ord(character):04X} (at position {position})"
            problem = f"Invalid value: {_go_quoted(manager)}: {place}"
            causes.append(Cause("FieldValueInvalid", "fieldManager", problem))
    return causes


def _go_quoted(text: str) -> str:
    """A text as Go's %q writes it."""
    return '"' + "".join(_ESCAPES.get(one, one if one.isprintable() else f"\\x{ord(one):02x}") for one in text) + '"'
