"""Steps, a provider and a health adapter for kardinal, as an example."""
