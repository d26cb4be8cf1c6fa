"""Promotion steps: sequences and inputs, edits of manifests, commit messages, pull request texts. Pure.

sequence                      which steps a promotion runs, and whether a written sequence makes sense
commit_plan                   the edit, the message and the trailers of a promotion
kustomization, yaml_text      setting images without touching anything else
pull_request_text, markdown   title and body of a pull request
"""
