"""The controllers of the plane: what a cluster's controller manager does that an API server cannot do without.

control       runs the others
collector     objects whose owners are gone
namespaces    the end of a namespace
definitions   the life of a CRD
expiry        the end of an Event
"""

from kardinal_local.plane.control.control import Control

__all__ = ["Control"]
