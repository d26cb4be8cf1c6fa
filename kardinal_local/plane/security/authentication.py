"""Authenticate requests by their bearer tokens.

Two kinds of bearer tokens are known: those of the identities, which live as long as the plane's directory, and those of
ServiceAccounts. A wrong token is never the same as none. Without one there is nothing to have but the health of the
server, as on clusters that allow anonymous requests for nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kardinal_local.plane.errors import StatusError
from kardinal_local.plane.security.accounts import ISSUER, Accounts, Authenticated, TokenRefused
from kardinal_local.plane.security.identities import Tokens
from kardinal_local.plane.security.users import ANONYMOUS, User

__all__ = ["HEALTH_PATHS", "Authentication"]

HEALTH_PATHS = frozenset({"/healthz", "/livez", "/readyz"})
_INVALID = "invalid bearer token"
_EXTRA_SPACE = "the provided Authorization header contains extra space before the bearer token, and is ignored"


class Authentication:
    """Tokens in, users out."""

    def __init__(self, identities: Tokens, accounts: Accounts) -> None:
        self._identities = identities
        self._accounts = accounts

    def of_request(self, authorization: str, *, path: str, warn: Callable[[str], None]) -> User:
        """Return the user of this `Authorization` header; raises 401 when it names none or an unknown one."""
        scheme, _, rest = authorization.strip().partition(" ")
        if scheme.lower() == "bearer" and rest.startswith(" "):
            warn(_EXTRA_SPACE)
        token = rest.partition(" ")[0] if scheme.lower() == "bearer" else ""
        if not token:
            if path in HEALTH_PATHS:
                return ANONYMOUS
            raise StatusError(401, "Unauthorized", "Unauthorized")
        try:
            return self.of_token(token, audiences=(ISSUER,)).user
        except TokenRefused:
            raise StatusError(401, "Unauthorized", "Unauthorized") from None

    def of_token(self, token: str, *, audiences: Sequence[str]) -> Authenticated:
        """Who a token speaks for to one of `audiences`; `TokenRefused` says why it is refused."""
        user = self._identities.authenticate(token)
        if user is not None and ISSUER in audiences:
            return Authenticated(user, (ISSUER,))
        try:
            found = self._accounts.authenticate(token, audiences=audiences)
        except TokenRefused as error:
            raise TokenRefused(f"[{_INVALID}, {error}]") from None
        if found is None:
            raise TokenRefused(_INVALID)
        return found
