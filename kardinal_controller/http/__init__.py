"""The HTTP of the control plane: a server of route groups, the endpoint for Bundles, and webhooks of Git hosts.

server                       an address with the route groups that the program composes
bundles                      the endpoint to which CI posts Bundles
request, creation            the document of a request, and the Bundle that is created for it
request_credentials, authentication
                             the credentials in the headers of a post, checked against the tokens of its namespace
credentials                  the tokens in Secret `kardinal-webhook`
hosts, host_secrets, wakes   the deliveries of Git hosts, their Secrets, and the promotions they wake
body, bodies, problem        limits on request bodies, and error documents
"""

from kardinal_controller.http.bodies import Bodies
from kardinal_controller.http.bundles import BundlePosts
from kardinal_controller.http.host_secrets import HostSecrets
from kardinal_controller.http.hosts import HostWebhooks
from kardinal_controller.http.server import HttpServer
from kardinal_controller.http.wakes import Wakes

__all__ = ["Bodies", "BundlePosts", "HostSecrets", "HostWebhooks", "HttpServer", "Wakes"]
