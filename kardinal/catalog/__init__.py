"""Compile the catalog of a cluster: hierarchical configuration in, the manifests that the cluster applies out.

    inventory documents ─► resolve global and tenant ─► merge a first node ─► packages, components, instances
        ─► one node for each instance ─► merge ─► render inputs, apply filters ─► {path: bytes}, versions, notices

Everything here is a function of the cluster's facts, the trees and the lock. Trees come through
`contracts.CatalogSources`; a process behind `contracts.Engine` merges and renders, and the engines are imported in
`worker` alone.
"""
