"""The readiness of repositories: the condition RepositoryReady of Pipelines."""

from kardinal_agent.readiness.reconciler import ReadinessReconciler

__all__ = ["ReadinessReconciler"]
