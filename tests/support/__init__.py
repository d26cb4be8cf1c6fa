"""The foundation of every room's tests: virtual time, leak and blocking-call detectors, one world per test."""
