// Functions that make Kubernetes objects.
import 'lib/kube.libjsonnet'
