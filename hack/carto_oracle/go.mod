// The JSONPath of client-go, which Cartographer evaluates templates and selectors with.
module kardinal.io/hack/carto_oracle

go 1.26.0

require (
	k8s.io/apimachinery v0.36.3
	k8s.io/client-go v0.36.3
)

require sigs.k8s.io/json v0.0.0-20250730193827-2d320260d730 // indirect
