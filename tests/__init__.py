"""The tests of kardinal: one directory per room, what they share in `support`."""
