"""Hostile others beside the real programs: what they send, where it arrives, and what it costs.

answers        answers of an HTTP server that cost a reader most
packs          answers of a Git host: packs and lists of references without an end
server         the process that gives both, and serves repositories by `git http-backend` as well
clients        requests to the webhook and the probes that cost a server most
repositories   repositories, files and charts that cost most to read, to edit and to render
places         the places that take bytes of others, and how each is brought to talk with the above
measuring      what a program answers and holds meanwhile
beside         a plane, the programs, a team that promotes honestly, and the hostile server, each a process of its own

Everything is made from one seed. `hack/bench/hostile.py` runs all of it,
`tests/resilience/test_hostile_servers.py` a part.
"""
