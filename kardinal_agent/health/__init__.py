"""How an environment proves what it runs, one module per adapter."""

from kardinal_agent.health.namespaces import HealthNamespaces, pipelines_from
from kardinal_agent.health.resource import ResourceHealth, deployment_key
from kardinal_agent.health.table import HealthTable, health_table
from kardinal_agent.health.verdict import HealthAdapter, Verdict

__all__ = [
    "HealthAdapter",
    "HealthNamespaces",
    "HealthTable",
    "ResourceHealth",
    "Verdict",
    "deployment_key",
    "health_table",
    "pipelines_from",
]
