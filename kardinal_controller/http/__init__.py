"""The HTTP API of the control plane: the endpoint that CI posts Bundles to."""

from kardinal_controller.http.server import ApiServer

__all__ = ["ApiServer"]
