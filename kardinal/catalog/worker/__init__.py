"""The process that merges and renders: the one place in which reclass-rs, gojsonnet and Jinja2 are imported."""
