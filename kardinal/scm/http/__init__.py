"""The HTTP client of the providers.

client         requests to one host with one credential
answers        tables that decide the meaning of an answer
budget         a budget of requests per host and credential
cache          answers for conditional requests
sessions       the sessions of a program, what they share, and checked addresses of host names
authentication, minted   credentials, and tokens that are minted for a while
first_seen     how long an object has been known
"""

from kardinal.scm.http.answers import HostAnswer, Outcome, Rule, decide, unknown_at_first
from kardinal.scm.http.authentication import HostAuthenticator, StaticToken, static_authenticator
from kardinal.scm.http.budget import Priority, Rate, RequestBudget
from kardinal.scm.http.client import Host, HostClient
from kardinal.scm.http.first_seen import NEW_SECONDS, FirstSeen
from kardinal.scm.http.minted import MintedToken, MintedTokens
from kardinal.scm.http.sessions import HostSessions

__all__ = [
    "NEW_SECONDS",
    "FirstSeen",
    "Host",
    "HostAnswer",
    "HostAuthenticator",
    "HostClient",
    "HostSessions",
    "MintedToken",
    "MintedTokens",
    "Outcome",
    "Priority",
    "Rate",
    "RequestBudget",
    "Rule",
    "StaticToken",
    "decide",
    "static_authenticator",
    "unknown_at_first",
]
