"""What the control plane offers over HTTP: the endpoint that CI posts Bundles to (promotion.md, "HTTP")."""

from kardinal_controller.http.server import ApiServer

__all__ = ["ApiServer"]
