"""The `kardinal` command line: one module per command."""
