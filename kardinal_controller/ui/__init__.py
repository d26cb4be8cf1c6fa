"""The web page: all Pipelines, live, in the program of the controller and in `kardinal ui`.

model                    the documents of the page, as pydantic models; OpenAPI and TypeScript types are made from them
documents                from the objects of a Pipeline to documents
feed, live, patches      what the page shows now, computed once for a change, and its last patches
stream, frames           one stream of server-sent events for a viewer
openapi, routes          the HTTP interface, and the routes that serve it
as_viewer, actions       what is read and done with the viewer's own identity
access                   who the viewer is, and which namespaces they may see
assets                   the files of the built page
server                   one address with all of it
own_page, command        the same server for the user of a kubeconfig: `kardinal ui`, `kardinal local up`
options, certificate     the options of the controller, and the certificate of the server
"""

from __future__ import annotations

from kardinal.cli.lazy import LazyCommand

__all__ = ["UI"]

UI = LazyCommand(
    "ui", "kardinal_controller.ui.command:ui", "Serve the web page on this machine, with the rights of your kubeconfig."
)
