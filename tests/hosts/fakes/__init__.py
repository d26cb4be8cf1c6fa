"""Hosts of Git repositories to test with: a real Git server, and an API that answers as its host publishes."""
