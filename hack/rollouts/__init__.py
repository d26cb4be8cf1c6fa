"""Argo Rollouts, built from source."""
