"""Promotion steps: the declaration of each step, the sequence of a promotion, and the edits. Pure.

    planned(step.spec.steps, registry.steps)      # the declarations and configs of a valid sequence
declaration, builtin       the declaration of a step, and all built-in steps
sequence, config           the steps that a promotion runs, and the validation of a written sequence
expressions                `if`, and `${…}` in the config of a step
facts                      the facts that earlier steps of the promotion have found
commit_plan                the edit, the message and the trailers of a promotion
kustomize_set_image, helm_set_image, helm_set_chart, yaml_update, replace, copy_files   steps that edit files
kustomize_build, helm_template   steps that render manifests; `rendered` writes them as files
config_merge, config_history, config_replay   merging a configuration, and the commits an environment has of it
branch_layout              an environment with a branch of its own
effect                     whether the images of an edit appear in the rendered manifests
pull_request_text, markdown   title and body of a pull request
registry, custom, control  steps of other packages, steps behind an endpoint, `if` and `continueOnError`
"""
