"""Attacks of a tenant, a CI token, a Git writer and a Git host, and what has to come of each."""
