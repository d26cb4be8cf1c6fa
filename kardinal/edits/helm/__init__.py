"""Edit the files of Helm charts: images among values, versions of dependencies.

helm_values      setting images in a values file
values_images    finding images in a values file
chart_versions   setting the version of a chart, in `Chart.yaml` and in manifests of Flux and Argo CD
chart_lock       updating the `Chart.lock` beside `Chart.yaml`
"""
