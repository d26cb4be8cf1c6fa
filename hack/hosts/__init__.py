"""What hosts of Git repositories publish about their APIs, fetched for the tests."""
