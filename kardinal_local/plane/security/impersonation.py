"""Act as another user (`kubectl --as`), with everything that needs a permission of its own.

Since 1.36 there are two ways, tried in turn. The constrained one asks for `impersonate:MODE` on the person *and* for
`impersonate-on:MODE:VERB` on what is requested, so that a right to act as a person can be kept to reading, say. The
older one asks for `impersonate` and then lets everything pass. When both refuse, the first refusal is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from urllib.parse import unquote

from kardinal_local.plane.errors import StatusError
from kardinal_local.plane.security.access import Access
from kardinal_local.plane.security.attributes import Attributes, forbidden
from kardinal_local.plane.security.rules import quoted
from kardinal_local.plane.security.users import (
    ANONYMOUS,
    AUTHENTICATED,
    MASTERS,
    NODE_NAME,
    UNAUTHENTICATED,
    User,
    account_groups,
    account_of,
)

__all__ = ["impersonate"]

_AUTHENTICATION = "authentication.k8s.io"
_NODE = "system:node:"
_NODES = "system:nodes"
_EXTRA = "impersonate-extra-"


@dataclass(frozen=True, slots=True)
class _Mode:
    """One way to ask; the older one has no name."""

    name: str = ""

    @property
    def verb(self) -> str:
        return f"impersonate:{self.name}" if self.name else "impersonate"

    @property
    def group(self) -> str:
        """The API group of users and groups."""
        return _AUTHENTICATION if self.name else ""


def impersonate(user: User, headers: Iterable[tuple[str, str]], asked: Attributes, *, access: Access) -> User:
    """Who the request acts as: `user` itself, unless its headers name a user it may act as."""
    wanted = _wanted(headers)
    if wanted is None:
        return user
    refusals: list[StatusError] = []
    for mode in _modes(user, wanted):
        try:
            if mode.name:
                access.require(user, replace(asked, verb=f"impersonate-on:{mode.name}:{asked.verb}"))
                _refuse_masters(user, wanted, mode)
            for needed in _needed(wanted, mode):
                access.require(user, needed)
            return _completed(wanted, mode)
        except StatusError as refusal:
            refusals.append(refusal)
    raise refusals[0]


def _wanted(headers: Iterable[tuple[str, str]]) -> User | None:
    """The person in the headers, exactly as written there."""
    name = uid = ""
    groups: list[str] = []
    extra: dict[str, tuple[str, ...]] = {}
    for header, value in headers:
        key = header.lower()
        if key == "impersonate-user":
            name = name or value
        elif key == "impersonate-uid":
            uid = uid or value
        elif key == "impersonate-group":
            groups.append(value)
        elif key.startswith(_EXTRA):
            key = unquote(key.removeprefix(_EXTRA))
            extra[key] = (*extra.get(key, ()), value)
    wanted = User(name, tuple(groups), uid, tuple(sorted(extra.items())))
    if name:
        return wanted
    if uid or groups or extra:
        raise StatusError(400, "BadRequest", f"requested {_printed(wanted)} without impersonating a user name")
    return None


def _modes(user: User, wanted: User) -> Iterator[_Mode]:
    """A node and an account have groups that follow from their names: with others they are not what they seem."""
    is_plain = not (wanted.groups or wanted.uid or wanted.extra)
    if wanted.name.startswith(_NODE):
        if is_plain and account_of(user.name) and dict(user.extra).get(NODE_NAME) == (wanted.name.removeprefix(_NODE),):
            yield _Mode("associated-node")
        if is_plain:
            yield _Mode("arbitrary-node")
    elif account_of(wanted.name):
        if is_plain:
            yield _Mode("serviceaccount")
    else:
        yield _Mode("user-info")
    yield _Mode()


def _needed(wanted: User, mode: _Mode) -> Iterator[Attributes]:
    """Every permission that acting as `wanted` takes."""
    named = Attributes(mode.verb, group=mode.group)
    if account := account_of(wanted.name):
        yield replace(named, resource="serviceaccounts", namespace=account[0], name=account[1])
    elif mode.name == "associated-node":
        # Which node it is has been seen to; the right is for whichever one the caller runs on.
        yield replace(named, resource="nodes", name="*")
    elif mode.name == "arbitrary-node":
        yield replace(named, resource="nodes", name=wanted.name.removeprefix(_NODE))
    else:
        yield replace(named, resource="users", name=wanted.name)
    if wanted.uid:
        yield Attributes(mode.verb, group=_AUTHENTICATION, resource="uids", name=wanted.uid)
    for group in wanted.groups:
        yield replace(named, resource="groups", name=group)
    for key, values in wanted.extra:
        for value in values:
            yield Attributes(mode.verb, group=_AUTHENTICATION, resource="userextras", subresource=key, name=value)


def _refuse_masters(user: User, wanted: User, mode: _Mode) -> None:
    if MASTERS in wanted.groups:
        asked = Attributes(mode.verb, group=mode.group, resource="groups", name=MASTERS)
        raise forbidden(user, asked, reason="impersonating the system:masters group is not allowed")


def _completed(wanted: User, mode: _Mode) -> User:
    """Return a user with the groups that all of its kind have."""
    groups = wanted.groups
    if mode.name.endswith("-node"):
        groups = (_NODES,)
    elif not groups and (account := account_of(wanted.name)):
        groups = account_groups(account[0])
    if wanted.name == ANONYMOUS.name:
        common = UNAUTHENTICATED
    else:
        common = UNAUTHENTICATED if UNAUTHENTICATED in groups else AUTHENTICATED
    return replace(wanted, groups=groups if common in groups else (*groups, common))


def _printed(wanted: User) -> str:
    """As Go prints the value, because the real server does."""
    groups = f"[]string{{{', '.join(quoted(group) for group in wanted.groups)}}}" if wanted.groups else "[]string(nil)"
    pairs = (f"{quoted(key)}:[]string{{{', '.join(map(quoted, values))}}}" for key, values in wanted.extra)
    extra = f"map[string][]string{{{', '.join(pairs)}}}" if wanted.extra else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:{quoted(wanted.uid)}, Groups:{groups}, Extra:{extra}}}'
