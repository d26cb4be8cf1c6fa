"""The reconcilers of supply chains: what the pure packages decide, done with an API server.

definitions   blueprints and templates as models
blueprint     conditions of ClusterSupplyChains and ClusterDeliveries
owner         stamps the resources of Workloads and Deliverables
runnable      stamps the runs of Runnables
uses          which owners a change concerns
kinds         whether the kinds of templates are served, and their objects
accounts      the ServiceAccounts with whose rights objects are stamped
applier       applies objects, and remembers refusals
departures    runs that were removed before a reconcile saw that they had finished
orphanage     deletes the orphans of owners and their surplus runs
removal       deletes objects that an owner stamped
"""
