"""Promotion steps: declarations, sequences, edits of manifests, commit messages, pull request texts. Pure.

builtin, declaration          every step of this version, and what a step declares of itself
sequence                      which steps a promotion runs, and whether a written sequence makes sense
facts                         what the steps so far have found out
commit_plan                   the edit, the message and the trailers of a promotion
kustomize_set_image           the step that sets images in a kustomization
kustomize_build, helm_template  the steps that render; `rendered` is what they write
effect, kustomize             what runs after an edit, read from what the kustomization renders
kustomization                 setting images in one without touching anything else
document_text, yaml_text      changing single values of YAML and JSON
document_path, document_walk  paths into documents
helm_values, literals         setting images among values, and after a literal
chart_versions, chart_lock    setting versions of charts
file_patterns                 the files that a pattern names
pull_request_text, markdown   title and body of a pull request
"""
