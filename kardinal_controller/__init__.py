"""Decides what is promoted where."""
