// Print conformance tests of CEL as JSON, which are published as text of protocol buffers.
//
//	celspec FILE...
//
// Each file is one cel.expr.conformance.test.SimpleTestFile; the output is one JSON array of them.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	_ "cel.dev/expr/conformance/proto2"
	_ "cel.dev/expr/conformance/proto3"
	"cel.dev/expr/conformance/test"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "celspec:", err)
		os.Exit(1)
	}
}

func run(paths []string) error {
	files := make([]json.RawMessage, 0, len(paths))
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var file test.SimpleTestFile
		if err := prototext.Unmarshal(text, &file); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		printed, err := protojson.Marshal(&file)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		files = append(files, printed)
	}
	return json.NewEncoder(os.Stdout).Encode(files)
}
