"""Supply chains: from a Workload to the objects that build it, by blueprints and templates that an operator writes.

api          the kinds of carto.run/v1alpha1 as models, and their CustomResourceDefinitions
blueprints   which blueprint, options and parameters an owner gets, and the order of the resources (pure)
realize      from a template and its inputs to an object, and from a live object to outputs and health (pure)
cli          `kardinal render`, and what `kardinal lint` checks of these kinds

It stands on the platform and knows nothing of promotion: a Bundle is one more object that a template may stamp.
"""
