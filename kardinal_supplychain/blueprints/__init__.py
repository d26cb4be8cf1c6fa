"""Decide what an owner gets: the blueprint that selects it, its options, its parameters, and the order (pure).

owner       the owner as selectors and templates read it
select      which of several selectors wins for an owner
options     which template a resource gets
params      the value of each parameter, and the layer that set it
compile     the order of the resources, and cycles
validate    what is wrong with a blueprint, with the path of the field
"""
