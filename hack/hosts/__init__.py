"""Published descriptions of the APIs of Git hosts, fetched for the tests."""
