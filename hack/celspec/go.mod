// The conformance tests of CEL, and the program that prints them as JSON.
module kardinal.io/hack/celspec

go 1.26

require (
	cel.dev/expr v0.25.3
	google.golang.org/protobuf v1.36.10
)
