"""The HTTP API of the control plane: the endpoint that CI posts Bundles to."""

from kardinal_controller.http.host_secrets import HostSecrets
from kardinal_controller.http.hosts import HostWebhooks
from kardinal_controller.http.server import ApiServer
from kardinal_controller.http.wakes import Wakes

__all__ = ["ApiServer", "HostSecrets", "HostWebhooks", "Wakes"]
