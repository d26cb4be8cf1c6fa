"""Set images in a kustomization, and find the images that it renders without running a renderer.

kustomization   setting images in the field `images`
manifests       YAML documents as plain values, within limits
references      the files and URLs that a kustomization refers to
image_fields    the image fields of a resource, and the effect of an entry of `images` on them
patches         strategic merge patches and JSON patches
layers          the kustomizations of all directories, applied from the bases up
reading         the rendered images, and the reasons why they may be incomplete
"""
