// Functions that make Kubernetes objects.
import 'lib/kube-libsonnet/kube.libsonnet'
