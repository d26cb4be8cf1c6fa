"""Stand-ins for what supply chains stamp and what cannot run here: a source-controller, kpack and Tekton.

    source     Git repositories -> archives (like a GitRepository of Flux)
    builder    an archive -> an image in a registry (like an Image of kpack)
    runner     an archive -> the result of its `make test` (like a TaskRun of Tekton)

Each is a process with an account whose Role names its own kind and nothing else; all kinds are of the group
`standins.example.com`, so that no manifest takes them for the real ones. They are for tests and for
`examples/supply-chain/run.sh`, and are not part of the package.
"""
