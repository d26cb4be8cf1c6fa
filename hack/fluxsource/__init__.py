"""Flux's source-controller, built from source."""
