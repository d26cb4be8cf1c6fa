"""What goes on without a request: the plane's share of a controller manager.

control       runs the others
collector     objects whose owners are gone
namespaces    the end of a namespace
definitions   the life of a CRD
expiry        the end of an Event
"""

from kardinal_local.plane.control.control import Control

__all__ = ["Control"]
