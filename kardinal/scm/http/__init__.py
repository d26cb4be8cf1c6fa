"""The HTTP side of providers: sessions, budgets, conditional requests, and what an answer means."""

from kardinal.scm.http.answers import Answer, Outcome, Rule, decide, quoted_words, unknown_at_first
from kardinal.scm.http.authentication import Authenticator, StaticToken, static_authenticator
from kardinal.scm.http.budget import Budget, Priority, Rate
from kardinal.scm.http.client import Host, HostClient
from kardinal.scm.http.first_seen import NEW_SECONDS, FirstSeen
from kardinal.scm.http.minted import MintedToken, MintedTokens
from kardinal.scm.http.sessions import HostSessions

__all__ = [
    "NEW_SECONDS",
    "Answer",
    "Authenticator",
    "Budget",
    "FirstSeen",
    "Host",
    "HostClient",
    "HostSessions",
    "MintedToken",
    "MintedTokens",
    "Outcome",
    "Priority",
    "Rate",
    "Rule",
    "StaticToken",
    "decide",
    "quoted_words",
    "static_authenticator",
    "unknown_at_first",
]
