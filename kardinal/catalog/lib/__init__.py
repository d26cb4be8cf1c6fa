"""Our own Jsonnet libraries, which templates import as `lib/kapitan.libjsonnet` and so on (package data)."""
