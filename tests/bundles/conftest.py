"""Fixtures: a control plane, and a scripted agent; and the controller of Bundles alone."""

from tests.bundles.in_memory import alone, bundles
from tests.bundles.scripted_agent import agent, controller, running

__all__ = ["agent", "alone", "bundles", "controller", "running"]
