"""Edit files: change single values, and leave every other byte of a file as it is.

    content = set_images(content, [PromotedImage("app", reference)])    # of a kustomization, for example
yaml        paths into documents, and changes of values in YAML and JSON
kustomize   setting images in a kustomization, and reading the images that it renders
helm        images in the values of charts, and the versions of charts
literals    the version after a repository or another text, in files of any kind
three_way   a line-by-line merge of two changes of one text
images      the images that an edit sets
"""
