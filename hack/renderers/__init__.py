"""kustomize and helm, built from source."""
