"""Commodore itself, to compare the catalogs of kardinal with."""
