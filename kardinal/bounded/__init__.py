"""Readers of bytes that others have written: hosts, registries, endpoints, contributors to a repository.

declaration   a row of the table of docs/security.md: the bytes that a reader takes, and its bounds
"""

from kardinal.bounded.declaration import ForeignBytes, mebibytes

__all__ = ["ForeignBytes", "mebibytes"]
