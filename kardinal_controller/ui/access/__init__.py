"""The access to the web page: who the viewer is, and which namespaces they may see.

seat         the viewer of a request, and the protocol of all ways to authenticate
token        a bearer token, pasted once; the session is in an encrypted cookie
proxy        the headers of an authenticating proxy with a client certificate
kubeconfig   a link with a one-time code, on loopback
cookies      the session cookie, and its key in Secret `kardinal-ui`
reviews      the questions to the API server, and the rights of viewers
refusal      unsuccessful answers, and the checks of origin, host and body
"""

from kardinal_controller.ui.access.cookies import SessionCookies, SessionKey
from kardinal_controller.ui.access.kubeconfig import KubeconfigAccess
from kardinal_controller.ui.access.proxy import ProxyAccess, require_client_certificate
from kardinal_controller.ui.access.refusal import Refusal
from kardinal_controller.ui.access.reviews import Reception, Reviews, Rights
from kardinal_controller.ui.access.seat import SESSION_HEADER, Access, Seat
from kardinal_controller.ui.access.token import TokenAccess

__all__ = [
    "SESSION_HEADER",
    "Access",
    "KubeconfigAccess",
    "ProxyAccess",
    "Reception",
    "Refusal",
    "Reviews",
    "Rights",
    "Seat",
    "SessionCookies",
    "SessionKey",
    "TokenAccess",
    "require_client_certificate",
]
