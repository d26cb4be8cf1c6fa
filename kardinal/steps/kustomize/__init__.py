"""Reading which images a kustomization renders, from a tree and without running anything.

manifests       YAML documents as plain values, within bounds
references      what a kustomization refers to, and what of that is not in the repository
image_fields    where images stand in a resource, and what an entry of `images` makes of them
patches         strategic merge and JSON patches
layers          one kustomization after the other, from the bases up
reading         the images that come out, and what could not be known
"""
