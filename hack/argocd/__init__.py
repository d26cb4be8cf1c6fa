"""Argo CD, built from source."""
