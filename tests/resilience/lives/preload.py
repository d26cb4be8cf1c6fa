"""Import everything that a process needs once, and keep it out of every collection of garbage after a fork."""

import gc

from tests.resilience.lives import mortal

__all__ = ["mortal"]

gc.collect()
gc.freeze()
