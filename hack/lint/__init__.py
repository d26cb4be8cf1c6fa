"""The checks of `make lint` that no linter has."""
