"""The kinds of carto.run/v1alpha1: the only definition of their fields, from which `crds/supplychain/` is generated.

kinds         the kinds as `ResourceType`, and which template kinds a blueprint may name
fields        parts that several kinds share: params, selectors, sources, references
owners        Workload and Deliverable
blueprints    ClusterSupplyChain and ClusterDelivery
templates     the five template kinds
runs          ClusterRunTemplate and Runnable
status        what is written on owners
crds          the CustomResourceDefinitions
"""
