"""What the tests of every room stand on: virtual time, leak and blocking-call detectors, one world per test."""
