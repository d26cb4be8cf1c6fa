"""`kustomize` and `helm` as bounded children without network, credentials or other files of this process.

renderer    the contract: from a tree to manifests
programs    the programs of this machine, run as children (`kardinal.processes`)
"""
