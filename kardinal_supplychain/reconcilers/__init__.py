"""The reconcilers of supply chains: what the pure packages decide, done with an API server.

definitions   blueprints and templates as models
blueprint     conditions of ClusterSupplyChains and ClusterDeliveries
owner         stamps the resources of Workloads and Deliverables
uses          which owners a change concerns
kinds         whether the kinds of templates are served, and their objects
accounts      the ServiceAccounts with whose rights objects are stamped
applier       applies objects, and remembers refusals
"""
