"""Models of custom resources: their base, and the CustomResourceDefinitions that are generated from them.

base, refused                  the base of every model, its field types, and fields that are declared to be refused
schema, descriptions, crds     from a model to a CustomResourceDefinition
unknown_fields                 fields of a document that its model does not have
"""
