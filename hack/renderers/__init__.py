"""kustomize, helm and ytt, built from source."""
