"""The conformance tests of CEL."""
