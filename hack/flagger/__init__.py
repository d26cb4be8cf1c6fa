"""Flagger, built from source."""
