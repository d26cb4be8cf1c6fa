"""Metrics that gates read and that promotions are verified by. Pure, except for the providers, which ask.

queries        the placeholders of a query
provider       what a provider of metrics is, and how it asks its server
prometheus     the provider for servers with the HTTP API of Prometheus
outcomes       samples to a value, a value to a status, and the results in the status of a check
readings       the checks that a gate reads, as its expression sees them
verification   whether the checks of a promotion have passed for long enough
"""
