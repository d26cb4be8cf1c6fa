"""GitOps controllers, built from source."""
