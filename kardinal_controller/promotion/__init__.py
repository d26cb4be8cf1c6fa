"""From a Bundle to a Graph, and from what came of the Graph back to the Bundle (promotion.md)."""
