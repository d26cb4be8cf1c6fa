"""Fixtures: a control plane, and a scripted agent."""

from tests.bundles.scripted_agent import agent, controller, running

__all__ = ["agent", "controller", "running"]
