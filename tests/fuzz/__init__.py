"""Generated input at every edge where a stranger's text arrives: nothing unhandled, and the bounds hold."""
