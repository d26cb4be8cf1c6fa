"""What the tests of this room need: a control plane, and hands in the place of an agent."""

from tests.bundles.hands import controller, hands

__all__ = ["controller", "hands"]
