"""The agent: executes PromotionSteps by writing to Git, and checks the health of environments.

execution      the state machine of a promotion
steps          the effects of the built-in steps
health         health checks, with one adapter per tool
hosts          the poll of open pull requests, and commit statuses
endpoints      HTTP requests of custom steps
readiness      the condition RepositoryReady of Pipelines
program        the composition of these parts; `main` and `options` are its command line
"""
